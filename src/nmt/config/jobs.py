"""Hydra's own command line: its flags, several jobs by one command, sweepers and launchers."""

import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from nmt.config.checks import MAX_NAME_CHARACTERS
from nmt.config.compose import (
    CONFIG_DIR,
    ROOT,
    conf_folder,
    config_of,
    given_settings,
    one_line_errors,
    parsed,
    register,
)
from nmt.config.keys import settings_name
from nmt.config.tree import Config
from nmt.errors import ConfigError, explained

LEARNED_GROUPS = ("data", "tokenizer", "model", "noise", "own", "training", "seed")
"""Groups of settings that decide what a run learns. All commands name a run by them, so that they find it again."""
FULL_ERROR = "HYDRA_FULL_ERROR"
"""The environment variable with which Hydra raises errors instead of printing them."""
_OF_HYDRA = re.compile(r"[+~]*hydra[./]")
_HOME = re.compile(r"(?<=[=\[,])~/[^,\]]*")


class Words(NamedTuple):
    """The words of a command line."""

    settings: list[str]
    """Overrides of settings."""
    of_hydra: list[str]
    """Hydra's flags, and overrides of Hydra itself."""

    @property
    def shows(self) -> bool:
        """Return whether something is printed instead of running the command."""
        return any(word.startswith(("--cfg", "--info")) for word in self.of_hydra)

    @property
    def is_multirun(self) -> bool:
        """Return whether the command runs once per combination of values."""
        return "--multirun" in self.of_hydra or "hydra.mode=MULTIRUN" in self.of_hydra

    @property
    def single(self) -> list[str]:
        """The overrides of settings that give one value."""
        both = zip(self.settings, parsed(self.settings), strict=True)
        return [word for word, override in both if not override.is_sweep_override()]


def parse(words: Sequence[str]) -> Words:
    """Separate Hydra's flags, which may stand anywhere, from the settings; use the folder of `--config-dir`."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = _refuse  # type: ignore[method-assign] # it would print the usage in several lines
    parser.add_argument("-m", "--multirun", action="store_true")
    parser.add_argument("--resolve", action="store_true")
    parser.add_argument("-c", "--cfg", choices=("job", "hydra", "all"))
    parser.add_argument("-p", "--package")
    parser.add_argument("-i", "--info", nargs="?", const="all")
    parser.add_argument("-cd", "--config-dir")
    parser.add_argument("overrides", nargs="*")
    found = parser.parse_intermixed_args(list(words))
    if found.config_dir is not None:
        os.environ[CONFIG_DIR] = os.path.abspath(found.config_dir)  # noqa: PTH100 - also for the processes it starts
    flags = [f"--{name}" for name in ("multirun", "resolve") if getattr(found, name)]
    flags += [f"--{name}={value}" for name in ("cfg", "package", "info") if (value := getattr(found, name))]
    quoted = [_with_quoted_homes(word) for word in found.overrides]
    of_hydra = [word for word in quoted if _OF_HYDRA.match(word)]
    return Words([word for word in quoted if word not in of_hydra], [*flags, *of_hydra])


def _refuse(message: str) -> NoReturn:
    raise ConfigError(f"{message}; settings are written key=value, without dashes, and `nmt --help` names the flags")


def _with_quoted_homes(word: str) -> str:
    """Quote paths that begin with ~, which Hydra's grammar refuses; they are expanded where they are used."""
    return word if "'" in word or '"' in word else _HOME.sub(r"'\g<0>'", word)


def run_with_hydra(
    words: Words, run: Callable[[Config, frozenset[str]], None], score: Callable[[Config], float]
) -> None:
    """Let Hydra do what its flags say: print settings, or run a command once, or per combination of values.

    Args:
        words: The words of the command line.
        run: Runs the command, given its settings and the names of those that the user gives.
        score: Returns what a search compares, given the settings of a finished run.
    """
    register()
    swept = {each.key_or_group for each in parsed(words.settings) if each.is_sweep_override()}
    failed, process = list[Exception](), os.getpid()

    def job(tree: DictConfig) -> float | None:
        of_hydra = HydraConfig.get()
        given = of_hydra.overrides.task
        searching = of_hydra.mode == RunMode.MULTIRUN and not of_hydra.sweeper._target_.endswith(".BasicSweeper")
        values = {each.key_or_group: each.get_value_string() for each in parsed(given) if each.key_or_group in swept}
        try:
            config = _named(config_of(tree), values)
            run(config, given_settings(given))
            return score(config) if searching else None
        except Exception as error:
            if (known := explained(error)) and values:
                known.args = (f"{' '.join(f'{key}={value}' for key, value in values.items())}: {known}",)
            if searching or os.getpid() != process:
                raise
            failed.append(known or error)  # Hydra would print a line of its own; the other jobs run
            return None

    main = hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name=ROOT)(job)
    with one_line_errors(), _command_line([*words.of_hydra, *words.settings]):
        main()
    if failed:
        raise failed[0]


def _named(config: Config, values: Mapping[str, str]) -> Config:
    """Return the settings of one of several jobs with its values in the names of its run and of its corpus."""
    learned = {key: value for key, value in values.items() if key.partition(".")[0] in LEARNED_GROUPS}
    of_text = {key: value for key, value in learned.items() if key.startswith(("data.", "tokenizer"))}
    of_text.pop("data.corpus", None)
    data = replace(config.data, corpus=_joined(config.data.corpus, of_text))
    return replace(config, name=_joined(config.name, learned), data=data)


def _joined(name: str, values: Mapping[str, str]) -> str:
    """Return a name with values of settings at its end: demo-model.dropout_0.1."""
    room = MAX_NAME_CHARACTERS - len(name.rpartition("/")[2]) - 1
    return f"{name}-{settings_name(values, room)}" if values else name


@contextmanager
def _command_line(words: Sequence[str]) -> Iterator[None]:
    """Replace the command line, which `hydra.main` reads, and let Hydra raise errors instead of printing them."""
    arguments, full = sys.argv, os.environ.get(FULL_ERROR)
    sys.argv, os.environ[FULL_ERROR] = [arguments[0], *words], "1"
    try:
        yield
    finally:
        sys.argv = arguments
        if full is None:
            del os.environ[FULL_ERROR]
