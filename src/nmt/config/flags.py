"""Hydra's flags (`--cfg job`, `--multirun`, `--config-dir mine`), read by Hydra's own parser."""

import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from hydra._internal.utils import get_args_parser

from nmt.errors import ConfigError

REFUSED = {
    "config_path": "--config-path would replace the package's settings: --config-dir FOLDER puts yours before them",
    "config_name": "--config-name would replace the root of all settings: write FOLDER/experiment/NAME.yaml, and "
    "choose it with --config-dir FOLDER experiment=NAME",
    "experimental_rerun": "--experimental-rerun loads a pickle, which may run any code: put the run's config.yaml "
    "under a first line `# @package _global_` into conf/experiment/NAME.yaml, and choose it with experiment=NAME",
    "shell_completion": "--shell-completion would complete settings but not commands",
    "hydra_help": "--hydra-help describes flags that nmt refuses: `nmt --help` names the others",
}
"""Why a flag of Hydra cannot work, and what does, by the name that Hydra's parser gives it."""
SHOWING = ("cfg", "info")
"""Flags that print something instead of running the command."""
_HOME = re.compile(r"(?<=[=\[,])~/[^,\]]*")
_SEVERAL = "hydra.mode=MULTIRUN"
"""The override that means `--multirun`."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The words of a command line, sorted by Hydra's parser."""

    overrides: list[str]
    flags: Namespace
    """All flags by their long names, as Hydra reads them."""

    @property
    def shows(self) -> bool:
        """Return whether something is printed instead of running the command."""
        return any(getattr(self.flags, name) for name in SHOWING)

    @property
    def is_multirun(self) -> bool:
        """Return whether the command runs once per combination of values."""
        return self.flags.multirun or _SEVERAL in self.overrides


def parse(words: Sequence[str]) -> CommandLine:
    """Separate flags, which may stand anywhere, from overrides; refuse what cannot work in one line."""
    if "--" in words:
        raise ConfigError("-- has no meaning here: leave it out, and write settings as key=value")
    parser = get_args_parser()
    parser.error = _refuse  # type: ignore[method-assign] # it would print the usage, with the flags that cannot work
    found, unknown = parser.parse_known_intermixed_args(list(words))
    if unknown:
        raise ConfigError(f"{unknown[0]} is not a setting: settings are written key=value, without dashes")
    for name, reason in REFUSED.items():
        if getattr(found, name):
            raise ConfigError(reason)
    if (found.resolve or found.package) and not found.cfg:
        raise ConfigError("--resolve and --package only change what --cfg job (or hydra, or all) prints: add it")
    return CommandLine([_with_quoted_homes(word) for word in found.overrides], found)


def _with_quoted_homes(word: str) -> str:
    """Quote paths that begin with ~, which Hydra's grammar refuses; they are expanded where they are used."""
    return word if "'" in word or '"' in word else _HOME.sub(r"'\g<0>'", word)


def _refuse(message: str) -> NoReturn:
    raise ConfigError(f"{message}; `nmt --help` names the flags")
