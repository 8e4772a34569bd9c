"""Hydra's own command line: its flags, several jobs by one command, sweepers and launchers."""

import io
import os
import re
import sys
import traceback
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import replace
from typing import NamedTuple, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from hydra.types import RunMode
from omegaconf import DictConfig

from nmt.config.checks import MAX_NAME_CHARACTERS
from nmt.config.compose import ROOT, adding_keys, check_override, given_settings, parsed, register_schema, trusting
from nmt.config.conf_folder import EXPERIMENT, conf_folder, groups, own_groups
from nmt.config.keys import plain_name
from nmt.config.messages import one_line_errors
from nmt.config.saved import to_config
from nmt.config.tree import Config
from nmt.errors import ConfigError, explained

LEARNED_GROUPS = ("data", "tokenizer", "model", "noise", "own", "training", "seed")
"""Groups of settings that decide what a run learns. All commands name a run by them, so that they find it again."""
OF_HYDRA = ("hydra.", "hydra/", "+hydra.", "++hydra.", "~hydra.")
"""Prefixes of overrides that configure Hydra itself, such as its launcher."""
FOLDERS_OF_HYDRA = ("hydra.run.", "hydra.output_subdir")
FULL_ERROR = "HYDRA_FULL_ERROR"
"""The environment variable with which Hydra raises errors instead of printing them."""
_HOME = re.compile(r"(?<=[=\[,])~/[^,\]]*")


class Words(NamedTuple):
    """The words of a command line."""

    settings: list[str]
    """Overrides of settings."""
    of_hydra: list[str]
    """Overrides of Hydra itself."""
    flags: list[str]
    """Hydra's flags."""
    config_dir: str | None

    @property
    def shows(self) -> bool:
        """Return whether something is printed instead of running the command."""
        return any(flag.startswith(("--cfg", "--info")) for flag in self.flags)

    @property
    def is_multirun(self) -> bool:
        """Return whether the command runs once per combination of values."""
        return "--multirun" in self.flags or "hydra.mode=MULTIRUN" in self.of_hydra


class Swept(NamedTuple):
    """What one of several jobs has of its own."""

    number: int
    values: Mapping[str, str]
    """Its values of the settings that have several, as text."""
    base: str
    """The name of the run without these values."""
    searching: bool
    """Whether the values of later jobs depend on its result."""


Task = Callable[[Config, frozenset[str], Swept | None], float | None]
"""Does a job, given its settings and the names of those that the user gives; returns its result if there is one."""


def parse(words: Sequence[str]) -> Words:
    """Separate flags, which may stand anywhere, and overrides of Hydra itself from those of settings."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = _refuse  # type: ignore[method-assign] # it would print the usage in several lines
    parser.add_argument("-m", "--multirun", action="store_true")
    parser.add_argument("--resolve", action="store_true")
    parser.add_argument("-c", "--cfg", choices=("job", "hydra", "all"))
    parser.add_argument("-p", "--package")
    parser.add_argument("-i", "--info", nargs="?", const="all")
    parser.add_argument("-cd", "--config-dir")
    parser.add_argument("overrides", nargs="*")
    if "--" in words:
        raise ConfigError("-- is not a setting: leave it out")
    found = parser.parse_intermixed_args(list(words))
    flags = [f"--{name}" for name in ("multirun", "resolve") if getattr(found, name)]
    flags += [f"--{name}={value}" for name in ("cfg", "package", "info") if (value := getattr(found, name))]
    quoted = [_with_quoted_homes(word) for word in found.overrides]
    of_hydra = [word for word in quoted if word.startswith(OF_HYDRA)]
    if folders := [word for word in of_hydra if word.startswith(FOLDERS_OF_HYDRA)]:
        raise ConfigError(f"{folders[0]} would make a folder without a run: name and paths.outputs say where a run is")
    return Words([word for word in quoted if word not in of_hydra], of_hydra, flags, found.config_dir)


def _refuse(message: str) -> NoReturn:
    raise ConfigError(f"{message}; settings are written key=value, without dashes, and `nmt --help` names the flags")


def _with_quoted_homes(word: str) -> str:
    """Quote paths that begin with ~, which Hydra's grammar refuses; they are expanded where they are used."""
    return word if "'" in word or '"' in word else _HOME.sub(r"'\g<0>'", word)


def without_sweeps(settings: Sequence[str]) -> list[str]:
    """Return the overrides that give one value."""
    return [word for word in settings if not parsed(word).is_sweep_override()]


def run_with_hydra(words: Words, task: Task) -> None:
    """Let Hydra do what its flags say: print settings, or call a task once, or per combination of values."""
    known = groups()
    for word in words.settings:
        check_override(word, known, several=words.is_multirun)
    last = {parsed(word).get_key_element(): word for word in words.settings}  # a search would take any of several
    words = words._replace(settings=[*last.values()])
    register_schema()
    failures: list[Exception] = []

    def job(tree: DictConfig) -> float | None:
        several = HydraConfig.get().mode == RunMode.MULTIRUN
        try:
            with _hydra_errors_raised(raised=False):  # child processes do not inherit it
                return _do(tree, task, several=several)
        except BrokenPipeError as error:
            failures.append(error)
            raise SystemExit from error  # nobody reads what the other jobs would print
        except Exception as error:
            failures.append(error)
            if not several:
                return None  # Hydra would add a line of its own
            if not explained(error):
                traceback.print_exc()  # an error from another process loses it
            raise

    overrides = [*adding_keys(words.settings), *words.of_hydra, *([_excluding(words)] if words.is_multirun else [])]
    main = hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name=ROOT)(job)
    printed = io.StringIO()  # Hydra's log would print a traceback for each line that a pager no longer reads
    shown = redirect_stdout(printed) if words.shows else nullcontext()
    try:
        with one_line_errors(overrides), _hydra_errors_raised(), _arguments([*words.flags, *overrides]), shown:
            main()
    except (Exception, SystemExit) as error:
        raise (failures[0] if failures else error) from None
    if failures and not words.is_multirun:
        raise failures[0]
    print(printed.getvalue(), end="")


def _do(tree: DictConfig, task: Task, *, several: bool) -> float | None:
    """Do a job; one of several has its values in its name."""
    config, of_hydra = trusting(to_config(tree)), HydraConfig.get()
    given = given_settings(of_hydra.overrides.task)
    if not several:
        return task(config, given, None)
    excluded = of_hydra.job.config.override_dirname.exclude_keys
    own = [each for word in of_hydra.overrides.task if (each := parsed(word)).key_or_group not in excluded]
    swept = Swept(
        of_hydra.job.num,
        {each.key_or_group: each.get_value_string() for each in own},
        config.name,
        not of_hydra.sweeper._target_.endswith(".BasicSweeper"),
    )
    name = _joined(config.name, of_hydra.job.override_dirname)
    corpus = _joined(config.data.corpus, "-".join(sorted(map(_of_the_text, own))).strip("-"))
    return task(replace(config, name=name, data=replace(config.data, corpus=corpus)), given, swept)


def _of_the_text(override: Override) -> str:
    """Return the value of a setting on which the prepared text may depend, as a part of a name; empty for others."""
    key = override.key_or_group
    if key != "tokenizer" and (key == "data.corpus" or not key.startswith(("data.", "tokenizer."))):
        return ""
    return f"{key}_{override.get_value_string()}"


def _joined(name: str, values: str) -> str:
    """Return the name of a run or corpus with values of a sweep at the end."""
    if not values:
        return name
    room = MAX_NAME_CHARACTERS - len(name.rpartition("/")[2]) - 1
    return f"{name}-{plain_name(values.replace('+', ''), room)}"


def _excluding(words: Words) -> str:
    """Return the override that keeps settings out of the names of jobs: those that do not differ, or change no weights.

    An experiment is in the name already, unless the settings give another one.
    """
    found = [parsed(word) for word in words.settings]
    named = any(each.key_or_group == "name" for each in found)
    learned = {*LEARNED_GROUPS, *own_groups(), *((EXPERIMENT,) if named else ())}
    kept = [
        each.key_or_group
        for each in found
        if each.is_sweep_override() and each.key_or_group.partition(".")[0] in learned
    ]
    out = dict.fromkeys(each.key_or_group for each in found if each.key_or_group not in kept)
    return f"hydra.job.config.override_dirname.exclude_keys=[{','.join(out)}]"


@contextmanager
def _hydra_errors_raised(*, raised: bool = True) -> Iterator[None]:
    """Let Hydra raise errors instead of printing them, or not."""
    before = os.environ.pop(FULL_ERROR, None)
    if raised:
        os.environ[FULL_ERROR] = "1"
    try:
        yield
    finally:
        os.environ.pop(FULL_ERROR, None)
        if before is not None:
            os.environ[FULL_ERROR] = before


@contextmanager
def _arguments(words: Sequence[str]) -> Iterator[None]:
    """Replace the command line, which `hydra.main` reads."""
    before = sys.argv
    sys.argv = [before[0], *words]
    try:
        yield
    finally:
        sys.argv = before
