"""Hydra's own command line: its flags, several jobs by one command, sweepers and launchers."""

import io
import os
import re
import sys
import traceback
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from hydra.types import RunMode
from omegaconf import DictConfig

from nmt.config.checks import MAX_NAME_CHARACTERS
from nmt.config.compose import ROOT, adding_keys, check_override, config_of, given_settings, parsed, register_schema
from nmt.config.conf_folder import EXPERIMENT, conf_folder, groups
from nmt.config.keys import plain_name
from nmt.config.messages import one_line_errors
from nmt.config.tree import Config
from nmt.errors import ConfigError, explained

LEARNED_GROUPS = ("data", "tokenizer", "model", "noise", "own", "training", "seed")
"""Groups of settings that decide what a run learns. All commands name a run by them, so that they find it again."""
OF_HYDRA = ("hydra.", "hydra/", "+hydra.", "++hydra.", "~hydra.")
"""Prefixes of overrides that configure Hydra itself, such as its launcher."""
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
    return Words([word for word in quoted if word not in of_hydra], of_hydra, flags, found.config_dir)


def _refuse(message: str) -> NoReturn:
    raise ConfigError(f"{message}; settings are written key=value, without dashes, and `nmt --help` names the flags")


def _with_quoted_homes(word: str) -> str:
    """Quote paths that begin with ~, which Hydra's grammar refuses; they are expanded where they are used."""
    return word if "'" in word or '"' in word else _HOME.sub(r"'\g<0>'", word)


def check_words(words: Words) -> None:
    """Refuse overrides that Hydra would reject with a long report, also those that give several values."""
    known = groups()
    for word in words.settings:
        check_override(word, known, several=words.is_multirun)


def without_sweeps(settings: Sequence[str]) -> list[str]:
    """Return the overrides that give one value."""
    return [word for word in settings if not parsed(word).is_sweep_override()]


@dataclass
class _Failures:
    """The errors of jobs, about which Hydra would print lines of its own."""

    all: list[Exception] = field(default_factory=list)
    kept: list[Exception] = field(default_factory=list)
    """Those that Hydra does not see."""
    process: int = field(default_factory=os.getpid)

    def keep(self, error: Exception, words: str, *, searching: bool) -> None:
        """Keep the error of a job; raise it if a search or the process that launched this one has to know it."""
        if (known := explained(error)) and words:
            known.args = (f"{words}: {known}",)
        self.all.append(known or error)
        if not searching and os.getpid() == self.process:
            self.kept.append(known or error)
            return
        if not known:
            traceback.print_exc()  # an error from another process loses it
        raise (known or error) from error


def run_with_hydra(words: Words, task: Task) -> None:
    """Let Hydra do what its flags say: print settings, or call a task once, or per combination of values."""
    check_words(words)
    register_schema()
    settings = [*{parsed(word).get_key_element(): word for word in words.settings}.values()]  # of equals, the last
    overrides = [*adding_keys(settings), *words.of_hydra]
    swept = [each.key_or_group for each in map(parsed, settings) if each.is_sweep_override()]
    failures, folders = _Failures(), set[Path]()

    def job(tree: DictConfig) -> float | None:
        of_hydra = HydraConfig.get()
        given, several = of_hydra.overrides.task, of_hydra.mode == RunMode.MULTIRUN
        searching = several and not of_hydra.sweeper._target_.endswith(".BasicSweeper")
        values = [each for each in map(parsed, given) if each.key_or_group in swept]
        if several:
            folders.add(Path(of_hydra.sweep.dir))
        try:
            config = config_of(tree)
            if not several:
                return task(config, given_settings(given), None)
            of_job = {each.key_or_group: each.get_value_string() for each in values if _is_learned(each, settings)}
            number = of_hydra.job.num
            return task(_named(config, of_job), given_settings(given), Swept(number, of_job, config.name, searching))
        except BrokenPipeError as error:
            failures.all.append(error)
            raise SystemExit from error  # nobody reads what the other jobs would print
        except Exception as error:
            failures.keep(error, " ".join(str(each.input_line) for each in values), searching=searching)
            return None

    printed = io.StringIO()  # Hydra's log would print a traceback for each line that a pager no longer reads
    shown = redirect_stdout(printed) if words.shows else nullcontext()
    main = hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name=ROOT)(job)
    try:
        with one_line_errors(overrides), _command_line([*words.flags, *overrides]), shown:
            main()
    except (Exception, SystemExit) as error:
        raise (failures.all[0] if failures.all else error) from None
    finally:
        for folder in folders:
            _remove_record(folder)
    if failures.kept:
        raise failures.kept[0]
    print(printed.getvalue(), end="")


def _is_learned(value: Override, settings: Sequence[str]) -> bool:
    """Return whether a setting with several values decides what a run learns, so that it names the run.

    An experiment names its run itself, unless the settings give a name.
    """
    named = any(parsed(word).key_or_group == "name" for word in settings)
    return value.key_or_group.partition(".")[0] in {*LEARNED_GROUPS, *((EXPERIMENT,) if named else ())}


def _named(config: Config, values: Mapping[str, str]) -> Config:
    """Return the settings of one of several jobs with its values in the names of its run and of its corpus."""
    of_corpus = {
        key: value
        for key, value in values.items()
        if key == "tokenizer" or (key.startswith(("data.", "tokenizer.")) and key != "data.corpus")
    }
    corpus = _joined(config.data.corpus, of_corpus)
    return replace(config, name=_joined(config.name, values), data=replace(config.data, corpus=corpus))


def _joined(name: str, values: Mapping[str, str]) -> str:
    """Return a name with values of settings at its end: demo-model.dropout_0.1."""
    if not values:
        return name
    room = MAX_NAME_CHARACTERS - len(name.rpartition("/")[2]) - 1
    return f"{name}-{plain_name('-'.join(sorted(f'{key}_{value}' for key, value in values.items())), room)}"


def _remove_record(folder: Path) -> None:
    """Remove what Hydra writes about several jobs, if that is all that there is; the settings are in each run."""
    (folder / "multirun.yaml").unlink(missing_ok=True)
    with suppress(OSError):  # a folder with other files stays
        folder.rmdir()
        folder.parent.rmdir()


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
