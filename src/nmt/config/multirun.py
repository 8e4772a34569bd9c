"""Several runs from one command, through Hydra's multirun and its launchers: in turn, together, or on a cluster."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from nmt.config.compose import conf_folder, register_schema
from nmt.config.messages import one_line_errors

LAUNCHING = ("hydra.", "hydra/", "+hydra.", "++hydra.")
"""How overrides begin that say how runs are launched, and not what is run."""


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Settings of the runs, and settings of their launcher (`hydra/launcher=submitit_slurm`)."""
    launching = [word for word in words if word.startswith(LAUNCHING)]
    return [word for word in words if word not in launching], launching


def multirun(job: Callable[[list[str]], None], words: Sequence[str], outputs: str = "outputs") -> None:
    """Call `job` with the overrides of each run; where a setting has several values (`seed=1,2`), with each in turn.

    Args:
        job: What to do; launchers may call it in other processes, so it must be a function of a module.
        words: Overrides of the runs and of the launcher.
        outputs: The folder in which launchers leave their logs.
    """

    def task(_: DictConfig) -> None:
        overrides = list(HydraConfig.get().overrides.task)
        with _room_for_another():
            job(overrides)

    register_schema()
    logs = f"{outputs}/multirun/{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    own = [f"hydra.sweep.dir={logs}", "hydra.sweep.subdir=.", "hydra.output_subdir=null", "hydra/job_logging=none"]
    arguments, full_error = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    sys.argv = ["nmt", "--multirun", *own, *words]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors come out as they are, for the command line to put in a line
    try:
        with one_line_errors(words):
            hydra.main(config_path=str(conf_folder()), config_name="config", version_base="1.3")(task)()
    finally:
        sys.argv = arguments
        if full_error is None:
            del os.environ["HYDRA_FULL_ERROR"]


@contextmanager
def _room_for_another() -> Iterator[None]:
    """Jobs compose their own settings, and Hydra takes only one thing at a time."""
    around = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        yield
    finally:
        GlobalHydra.instance().hydra = around
