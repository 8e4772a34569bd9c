"""What may follow on a command line: stages, settings, and the values of those that have few."""

from collections.abc import Mapping, Sequence

from nmt.config.choices import CHOICES
from nmt.config.compose import options
from nmt.config.keys import GROUPS, all_keys, describe_keys

SCRIPT = """\
_nmt() {
    local IFS=$'\\n'
    COMPREPLY=($("${COMP_WORDS[0]}" completion -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null))
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -F _nmt nmt
"""
"""For bash, and for zsh after `autoload bashcompinit`: `eval "$(nmt completion)"`."""


def complete(line: str, stages: Mapping[str, Sequence[str]]) -> list[str]:
    """The words, or the ends of a word after its `=`, that a line up to the cursor may go on with.

    Args:
        line: the line, which begins with the program's own name.
        stages: the settings that each stage reads, as groups or single keys.
    """
    words = line.split() or [""]
    current = "" if line.endswith((" ", "\t")) else words.pop()
    if len(words) < 2:
        return [stage for stage in sorted([*stages, "completion"]) if words and stage.startswith(current)]
    key, equals, begun = current.partition("=")
    if equals:
        return [value for value in _values(key) if value.startswith(begun)]
    settings = stages.get(words[1], ())
    keys = [each.name for prefix in settings for each in describe_keys(prefix)]
    groups = [group for group in GROUPS if group == "experiment" or group in settings]
    return [f"{name}=" for name in sorted({*keys, *groups}) if name.startswith(current)]


def _values(key: str) -> list[str]:
    if key in GROUPS:
        return options(key)
    if key in CHOICES:
        return sorted(CHOICES[key])
    return ["false", "true"] if key in all_keys() and all_keys()[key].type == "bool" else []
