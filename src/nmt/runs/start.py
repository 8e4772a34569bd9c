"""Write the records of a run when its training starts or resumes, and open the services that draw its curves."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict

from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.runs.checkpoint import CheckpointRecord
from nmt.runs.environment import environment, read_environment
from nmt.runs.layout import RunLayout
from nmt.runs.listener import Listener, worked
from nmt.runs.tensorboard import Board
from nmt.runs.tracker import Tracker
from nmt.runs.wandb import wandb_run
from nmt.storage.files import write_json, write_text


def start_tracker(config: Config, step: int, origin: CheckpointRecord | None = None, precision: str = "") -> Tracker:
    """Write config.yaml and environment.json, and return a tracker that drops events of later steps."""
    layout = RunLayout(config.run_folder)
    write_text(layout.settings, to_yaml(config))
    described = environment(config, config.data_folder, origin, precision)
    if step and layout.environment.is_file():
        with suppress(UserError):  # a damaged one is replaced
            described = described.after(read_environment(layout.environment))
    write_json(layout.environment, asdict(described))
    tracker = Tracker(layout.folder, step)
    tracker.listeners = open_listeners(config, step)
    return tracker


def open_listeners(config: Config, step: int | None) -> list[Listener]:
    """Return the services that the settings ask for.

    Training goes on after `step`, and repeats what they have heard of later steps; None if nothing is trained.
    """
    found: list[Listener] = []
    if config.tracking.tensorboard:
        found.append(Board(config.run_folder, step))
    if config.tracking.wandb != "disabled" and (run := wandb_run(config)) is not None:
        found.append(run)
    return found


@contextmanager
def listening(config: Config) -> Iterator[list[Listener]]:
    """Open the services that the settings ask for to hear of evaluations, and close them after this block."""
    listeners = open_listeners(config, None)
    try:
        yield listeners
    finally:
        for each in listeners:
            worked(each, each.close, 0)  # of the run, which an evaluation that fails does not change
