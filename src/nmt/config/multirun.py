"""Run commands through Hydra: its flags, several runs by one command, and launchers for a cluster or in parallel."""

import io
import os
import re
import time
import traceback
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra._internal.utils import _run_hydra, get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, IntervalSweep, Override
from hydra.version import setbase
from omegaconf import DictConfig

from nmt.config.checks import MAX_NAME_CHARACTERS, NOT_OF_THE_TEXT, marked
from nmt.config.compose import ROOT, adding_keys, compose, compose_with_hydra, register_schema
from nmt.config.conf_folder import EXPERIMENT, conf_folder, options, own_groups
from nmt.config.data import DataConfig
from nmt.config.flags import CommandLine, parse
from nmt.config.keys import all_keys, describe_keys, open_keys, value_of
from nmt.config.messages import one_line_errors, unknown_setting
from nmt.config.plain_names import settings_name
from nmt.config.swept_run import SweptRun
from nmt.config.tree import Config
from nmt.errors import ConfigError, UserError

RUN_GROUPS = ("data", "tokenizer", "model", "noise", "own", "training", "seed")
"""Groups of settings that decide what a run learns. All commands name a run by them, so that they find it again."""
LAUNCHER_PREFIXES = ("hydra.", "hydra/", "+hydra.", "++hydra.", "~hydra.")
"""Prefixes of overrides that configure Hydra and its launcher, not the runs."""
_FULL_ERROR = "HYDRA_FULL_ERROR"
"""The environment variable with which Hydra raises errors instead of printing them."""

Job = Callable[[list[str]], Config | None]
"""Does one run with these overrides, perhaps in another process, so it must be importable from a module. Returns the
settings of the run if it has a result."""


Watch = Callable[[SweptRun, Callable[[], Config | None]], float | None]


class JobError(Exception):
    """An unexpected error of a run; its text is the traceback, which an error from another process does not keep."""


@dataclass(frozen=True, slots=True)
class _Sweep:
    """What all runs of a sweep share."""

    settings: list[str]
    """The overrides of the runs."""
    base: Config
    """The settings of the first run."""
    keys: tuple[str, ...]
    """The settings with several values."""
    searching: bool


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate the settings of the runs from those of their launcher (`hydra/launcher=submitit_slurm`)."""
    launcher = [word for word in words if word.startswith(LAUNCHER_PREFIXES)]
    return [word for word in words if word not in launcher], launcher


def show(line: CommandLine) -> None:
    """Print what a flag such as `--cfg job` asks for, after the same checks as for a run."""
    settings, launching = split(line.overrides)
    compose(settings)
    package = line.flags.package
    if package and package != "_global_" and package.partition(".")[0] != "hydra" and not describe_keys(package):
        raise ConfigError(f"--package {package}: {unknown_setting(package)}")
    found = io.StringIO()
    with redirect_stdout(found):  # Hydra's log would print a traceback for each line that a pager no longer reads
        _hydra(line.flags, [*adding_keys(settings), *launching], lambda _: None)
    print(found.getvalue(), end="")


def run_once(line: CommandLine, job: Job) -> None:
    """Do one run that has overrides for Hydra itself, such as `hydra.verbose=true`."""
    settings, launching = split(line.overrides)
    compose(settings)
    if folder := next((word for word in launching if word.lstrip("+").startswith("hydra.run.dir=")), None):
        raise ConfigError(f"{folder} has no effect: name= and paths.outputs= name the folder of a run")

    def task(_: DictConfig) -> None:
        with _hydra_released(), _keeping_traceback():
            job(settings)

    quiet = ["hydra.run.dir=.", "hydra.output_subdir=null", "hydra/job_logging=none"]
    _hydra(line.flags, [*quiet, *adding_keys(settings), *launching], task)


def multirun(
    job: Job,
    words: Sequence[str],
    outputs: str = "",
    run_groups: Sequence[str] = RUN_GROUPS,
    searchable: Collection[str] = RUN_GROUPS,
    recorded: tuple[str, Watch] | None = None,
) -> None:
    """Call `job` with the overrides of each run: one per combination of the values given (`training.steps=5,6`).

    Runs with other values of these settings have other names, such as demo-training.steps_5 or demo-seed2.

    Args:
        job: What does a run.
        words: Overrides of the runs and of the launcher.
        outputs: The folder in which launchers write their logs; by default that of the first run.
        run_groups: The groups of settings whose values belong to the name of a run.
        searchable: The groups of settings that change what a run's result is, so that a search may vary them.
        recorded: The command that trains, and what does and records each run and returns its result.
    """
    settings, launching = split(words)
    settings = _without_replaced(settings)
    sweep = _sweep(settings, launching, searchable)
    names = _naming_keys(sweep, run_groups)
    outputs = outputs or str(sweep.base.runs_folder)

    command, watch = recorded or ("", _unwatched)

    def task(_: DictConfig) -> Any:
        overrides = list(HydraConfig.get().overrides.task)
        given = _values(overrides)
        values = {key: given[key] for key in sweep.keys if key in given}
        run = SweptRun(HydraConfig.get().job.num, values, sweep.base, command, outputs, sweep.searching)
        with _hydra_released(), _keeping_traceback():
            return watch(run, lambda: job(named_by_values(overrides, names) if names else overrides))

    logs = f"{outputs}/multirun/{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    quiet = [f"hydra.sweep.dir={_quoted(logs)}", "hydra.sweep.subdir=.", "hydra.output_subdir=null"]
    flags = parse(["--multirun"]).flags
    _hydra(flags, [*quiet, "hydra/job_logging=none", *adding_keys(settings), *launching], task)


def _unwatched(_: SweptRun, do: Callable[[], Config | None]) -> None:
    do()


def _sweep(settings: list[str], launching: list[str], searchable: Collection[str]) -> _Sweep:
    """Return what the runs share; refuse to search settings that do not change the result."""
    register_schema()
    base, of_hydra = compose_with_hydra(first_run(settings), launching or ["hydra.mode=MULTIRUN"])
    sweeper = of_hydra.sweeper
    searching = not sweeper._target_.endswith(f".{BasicSweeper.__name__}")
    swept = [str(each.key_or_group) for each in _parsed(settings) if each.is_sweep_override()]
    keys = tuple(dict.fromkeys([*swept, *(sweeper.get("params") or {})]))
    for key in keys if searching else ():
        if key.partition(".")[0] not in {*searchable, EXPERIMENT, *own_groups()}:
            raise ConfigError(f"a search cannot vary {key}: the result does not depend on it; give it one value")
    if not searching and (ranges := [each.input_line for each in _parsed(settings) if each.is_interval_sweep()]):
        raise ConfigError(f"{ranges[0]} needs a search, such as hydra/sweeper=search; otherwise list the values: a,b,c")
    return _Sweep(settings, base, keys, searching)


def _without_replaced(settings: list[str]) -> list[str]:
    """Return the overrides without those that a later one of the same setting replaces.

    A search would take the one value, whether it is the earlier or the later one, and all runs would be the same.
    """
    with one_line_errors(settings):
        last = {each.get_key_element(): number for number, each in enumerate(_parsed(settings))}
    return [settings[number] for number in sorted(last.values())]


def _parsed(words: Sequence[str]) -> list[Override]:
    """Return the overrides that these words are."""
    return OverridesParser.create().parse_overrides(list(words))


def _values(overrides: Sequence[str]) -> dict[str, str]:
    """Return the values that overrides give, as text, by setting."""
    return {str(each.key_or_group): each.get_value_string() for each in _parsed(overrides)}


def _hydra(flags: Namespace, overrides: list[str], task: Callable[[DictConfig], Any]) -> None:
    """Let Hydra do what its flags say with these overrides, and raise errors instead of printing them."""
    register_schema()
    setbase("1.3")
    arguments = Namespace(**{**vars(flags), "overrides": overrides, "config_dir": None})
    failure: Exception | None = None
    try:
        with one_line_errors(overrides), _raising_errors():
            _run_hydra(
                args=arguments, args_parser=get_args_parser(), task_function=task, config_path=str(conf_folder()),
                config_name=ROOT,
            )  # fmt: skip
    except JobError as error:
        failure = error
    if failure:
        raise failure.__cause__ or failure


@contextmanager
def _raising_errors() -> Iterator[None]:
    """Let Hydra raise errors instead of printing them."""
    before = os.environ.get(_FULL_ERROR)
    os.environ[_FULL_ERROR] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_FULL_ERROR]


def named_by_values(overrides: Sequence[str], keys: Collection[str]) -> list[str]:
    """Return the overrides of a run with its values of these settings in its name: each run needs its own folder.

    So does each prepared text: values that it depends on are in the name of the corpus, too.
    """
    config = compose(overrides)
    given = {each.key_or_group: each.value() for each in _parsed(overrides)}
    values = {key: value_of(config, key) if key in all_keys() else given[key] for key in keys if key != "seed"}
    seed = f"-seed{config.seed}" if "seed" in keys else ""
    room = MAX_NAME_CHARACTERS - len(f"{PurePath(config.name).name}-{seed}")
    name = f"{config.name}-{settings_name(values, room)}{seed}" if values else config.name + seed
    of_text = {key: value for key, value in values.items() if _is_of_the_text(key)}
    room = MAX_NAME_CHARACTERS - len(f"{config.data.corpus}-")
    corpus = [f"data.corpus={_quoted(f'{config.data.corpus}-{settings_name(of_text, room)}')}"] if of_text else []
    return [*overrides, *corpus, f"name={_quoted(name)}"]


def _is_of_the_text(key: str) -> bool:
    """Return whether the prepared text depends on a setting."""
    group, _, name = key.partition(".")
    if key == "tokenizer" or (group == "data" and key in open_keys()):
        return True
    others = marked(DataConfig, NOT_OF_THE_TEXT)
    return bool(name) and (group == "tokenizer" or (group == "data" and name.rpartition(".")[2] not in others))


def first_run(words: Sequence[str]) -> list[str]:
    """Return the overrides of the first of several runs."""
    with one_line_errors(words):
        return [
            f"{each.get_key_element()}={_first_value(each)}" if each.is_sweep_override() else word
            for word, each in zip(words, _parsed(words), strict=True)
        ]


def _first_value(override: Override) -> str:
    """Return the first of several values of a setting."""
    value = override.value()
    if isinstance(value, IntervalSweep):
        return str(value.start)
    if isinstance(value, Glob):
        return next(iter(value.filter(options(str(override.key_or_group)))), "")
    return next(override.sweep_string_iterator(), "")


def _naming_keys(sweep: _Sweep, run_groups: Sequence[str]) -> tuple[str, ...]:
    """Return the settings with several values that must be in the names of the runs.

    An experiment is in the name already, unless the settings give another one.
    """
    named = any(each.key_or_group == "name" for each in _parsed(sweep.settings))
    groups = {*run_groups, *own_groups(), *((EXPERIMENT,) if named else ())}
    return tuple(key for key in sweep.keys if key.partition(".")[0] in groups)


def _quoted(text: str) -> str:
    """Return text as a value of an override: Hydra's grammar gives spaces, commas and brackets a meaning."""
    escaped = re.sub(r"(\\*)('|$)", lambda found: 2 * found[1] + ("\\'" if found[2] else ""), text)
    return f"'{escaped}'"


@contextmanager
def _keeping_traceback() -> Iterator[None]:
    """Distinguish unexpected errors of a run from errors about settings, which become one line without a traceback."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise JobError("".join(traceback.format_exception(error))) from error


@contextmanager
def _hydra_released() -> Iterator[None]:
    """Release Hydra's global state, which a job needs to compose its own settings; restore it afterwards."""
    outer = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        yield
    finally:
        GlobalHydra.instance().hydra = outer
