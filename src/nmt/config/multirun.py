"""Run one command many times through Hydra's multirun and its launchers: in turn, in parallel, or on a cluster."""

import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.errors import HydraException
from omegaconf import DictConfig

from nmt.config.checks import MAX_NAME_CHARACTERS
from nmt.config.compose import adding_keys, compose, register_schema, without_unknown_groups
from nmt.config.conf_folder import conf_folder, options
from nmt.config.keys import all_keys, value_of
from nmt.config.messages import one_line_errors
from nmt.config.plain_names import settings_name
from nmt.config.renamed import rename_overrides
from nmt.errors import UserError
from nmt.feature import learned_groups

RUN_GROUPS = ("data", "tokenizer", "model", *learned_groups(), "training", "seed")
"""Groups of settings that decide what a run learns. All commands name a run by them, so that they find it again."""
LAUNCHER_PREFIXES = ("hydra.", "hydra/", "+hydra.", "++hydra.")
"""Prefixes of overrides that configure the launcher, not the runs."""


class JobError(Exception):
    """An unexpected error of a run; its text is the traceback, which an error from another process does not keep."""


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate the settings of the runs from those of their launcher (`hydra/launcher=submitit_slurm`)."""
    launcher = [word for word in words if word.startswith(LAUNCHER_PREFIXES)]
    return [word for word in words if word not in launcher], launcher


def multirun(
    job: Callable[[list[str]], None],
    words: Sequence[str],
    outputs: str = "",
    run_groups: Sequence[str] = RUN_GROUPS,
) -> None:
    """Call `job` with the overrides of each run: one per combination of the values given (`training.steps=5,6`).

    Runs with other values of these settings have other names, such as demo-training.steps_5 or demo-seed2.

    Args:
        job: The function to call, perhaps in other processes, so it must be importable from a module.
        words: Overrides of the runs and of the launcher.
        outputs: The folder in which launchers write their logs; by default that of the first run.
        run_groups: The groups of settings whose values belong to the name of a run.
    """

    def task(_: DictConfig) -> None:
        overrides = [word for word in HydraConfig.get().overrides.task if word not in left_out]
        with _hydra_released(), _keeping_traceback():
            job(named_by_values(overrides, keys) if keys else overrides)

    register_schema()
    words, left_out = adding_keys(rename_overrides(words)), without_unknown_groups()
    keys = _naming_keys(words, run_groups)
    outputs = outputs or compose(first_run(split(words)[0])).paths.outputs
    logs = f"{outputs}/multirun/{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    folder = [f"hydra.sweep.dir={_quoted(logs)}", "hydra.sweep.subdir=."]
    quiet = [*folder, "hydra.output_subdir=null", "hydra/job_logging=none"]
    failure: Exception | None = None
    try:
        with one_line_errors(words), _command_line([*quiet, *left_out, *words]):
            hydra.main(config_path=str(conf_folder()), config_name="config", version_base="1.3")(task)()
    except JobError as error:
        failure = error
    if failure:
        raise failure.__cause__ or failure


@contextmanager
def _command_line(words: Sequence[str]) -> Iterator[None]:
    """Let Hydra read these words from the command line, and raise errors instead of printing them."""
    arguments, full_error = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    sys.argv = ["nmt", "--multirun", *words]
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    finally:
        sys.argv = arguments
        if full_error is None:
            del os.environ["HYDRA_FULL_ERROR"]


def named_by_values(overrides: Sequence[str], keys: Collection[str]) -> list[str]:
    """Return the overrides of a run with its values of these settings in its name: each run needs its own folder."""
    config = compose(overrides)
    given = {each.key_or_group: each.value() for each in OverridesParser.create().parse_overrides(list(overrides))}
    values = {key: value_of(config, key) if key in all_keys() else given[key] for key in keys if key != "seed"}
    seed = f"-seed{config.seed}" if "seed" in keys else ""
    room = MAX_NAME_CHARACTERS - len(f"{PurePath(config.name).name}-{seed}")
    name = f"{config.name}-{settings_name(values, room)}{seed}" if values else config.name + seed
    return [*overrides, f"name={_quoted(name)}"]


def first_run(words: Sequence[str]) -> list[str]:
    """Return the overrides of the first of several runs."""
    with one_line_errors(words):
        overrides = OverridesParser.create().parse_overrides(list(words))
        return [
            f"{each.get_key_element()}={_first_value(each)}" if each.is_sweep_override() else word
            for word, each in zip(words, overrides, strict=True)
        ]


def _first_value(override: Override) -> str:
    """Return the first of several values of a setting."""
    value = override.value()
    if isinstance(value, Glob):
        return next(iter(value.filter(options(str(override.key_or_group)))), "")
    return next(override.sweep_string_iterator(), "")


def _naming_keys(words: Sequence[str], run_groups: Sequence[str]) -> tuple[str, ...]:
    """Return the settings with several values that must be in the names of the runs.

    An experiment is in the name already, unless the settings give another one. Words that cannot be read are left to
    Hydra.
    """
    try:
        overrides = OverridesParser.create().parse_overrides(list(words))
    except HydraException:
        return ()
    groups = {*run_groups, "experiment"} if any(each.key_or_group == "name" for each in overrides) else {*run_groups}
    swept = (each.key_or_group for each in overrides if each.is_sweep_override())
    return tuple(dict.fromkeys(key for key in swept if key.partition(".")[0] in groups))


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
