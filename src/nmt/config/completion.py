"""Shell completion of commands, settings, and the values of settings that have few."""

from collections.abc import Mapping, Sequence

from nmt.config.choices import CHOICES
from nmt.config.conf_folder import EXPERIMENT, groups, options, own_groups
from nmt.config.keys import all_keys, describe_keys

FLAGS = ("--cfg", "--config-dir", "--help", "--hydra-help", "--info", "--multirun", "--package", "--resolve")
BASH = """\
_nmt() {
    local IFS=$'\\n'
    COMPREPLY=($("${COMP_WORDS[0]}" completion -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}
complete -F _nmt nmt
"""
ZSH = """\
_nmt() {
    local line="${(j: :)words[1,CURRENT-1]} $PREFIX"
    local -a found=("${(@f)$("${words[1]}" completion -- "$line" 2>/dev/null)}")
    compset -P '*='
    compadd -S ' ' -- ${found:#*=}
    compadd -S '' -- ${(M)found:#*=}
}
compdef _nmt nmt
"""
FISH = """\
function __nmt_complete
    set -l words (commandline -opc)
    set -l key (string match -r '^[^=]*=' -- (commandline -ct))
    for each in ($words[1] completion -- (commandline -cp) 2>/dev/null)
        echo $key$each
    end
end
complete -c nmt -f -a '(__nmt_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
"""What each shell reads: `eval "$(nmt completion bash)"`, or `nmt completion fish | source`."""


def complete(line: str, commands: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the possible next words of a line, or, after a `=`, the possible values.

    Args:
        line: The line up to the cursor, beginning with the name of the program.
        commands: The settings that each command reads, as groups or single keys.
    """
    words = line.split() or [""]
    current = "" if line.endswith((" ", "\t")) else words.pop()
    if len(words) < 2:
        return [name for name in sorted([*commands, "completion"]) if words and name.startswith(current)]
    if current.startswith("-"):
        return [flag for flag in FLAGS if flag.startswith(current)]
    key, equals, value_start = current.partition("=")
    if equals:
        return [value for value in _values(key) if value.startswith(value_start)]
    settings = commands.get(words[1], ())
    keys = [each.name for prefix in settings for each in describe_keys(prefix)]
    chosen = [group for group in groups() if group in (EXPERIMENT, *own_groups(), *settings)]
    return [f"{name}=" for name in sorted({*keys, *chosen}) if name.startswith(current)]


def _values(key: str) -> list[str]:
    if key in groups():
        return options(key)
    if key in CHOICES:
        return sorted(CHOICES[key])
    return ["false", "true"] if key in all_keys() and all_keys()[key].type.startswith("bool") else []
