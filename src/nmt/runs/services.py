"""Services that draw the curves of a run, in its main process: TensorBoard, and Weights & Biases.

An exception of a service is a warning, and never stops a run.
"""

import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nmt.config.saved import flatten
from nmt.config.tree import Config
from nmt.packages import import_optional
from nmt.storage.files import write_text

INIT_SECONDS, FINISH_SECONDS = 60, 120
"""How long Weights & Biases may take to start and to finish."""


def open_services(config: Config, step: int | None) -> list["Service"]:
    """Return the services that the settings ask for.

    Training goes on after `step`, and repeats what they have heard of later steps; None if nothing is trained.
    """
    found: list[Board | WandbRun] = []
    if config.tracking.tensorboard:
        found.append(Board(config.run_folder, step))
    if config.tracking.wandb != "disabled":
        try:
            found.append(WandbRun(_start_run(config)))
        except Exception as error:  # a service must not stop the run
            _warn_without(WandbRun.name, error)
    return found


@contextmanager
def evaluation_services(config: Config) -> Iterator[Callable[[str, int, Mapping[str, float]], None]]:
    """Yield a function that logs the scores of a split and a step with the services that the settings ask for."""
    services = open_services(config, None)

    def tell(split: str, step: int, scores: Mapping[str, float]) -> None:
        for each in services:
            worked(each, each.log, split, step, scores)

    try:
        yield tell
    finally:
        for each in services:
            worked(each, each.close, 0)  # of the run, which an evaluation that fails does not change


def worked(service: "Service", method: Callable[..., None], *arguments: object) -> bool:
    """Call a method of a service; return False, and warn, if it fails."""
    try:
        method(*arguments)
    except Exception as error:
        _warn_without(service.name, error)
        return False
    return True


def _warn_without(service: str, error: Exception) -> None:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    print(
        f"warning: {service} does not work ({reason}); continuing without it; the run's own files contain everything",
        file=sys.stderr,
        flush=True,
    )


class Board:
    """Writes events to the run's folder for TensorBoard; a resumed run adds a file."""

    name = "TensorBoard"

    def __init__(self, run_folder: Path, step: int | None) -> None:
        """Open a file; if training goes on after `step`, later events are hidden because it writes them again."""
        import_optional("tensorboard")
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 (slow to import, and optional)

        hidden_from = None if step is None else step + 1
        self._writer: Any = SummaryWriter(str(run_folder / "tensorboard"), purge_step=hidden_from)

    def log(self, event: str, step: int, fields: Mapping[str, object]) -> None:
        """Write the numbers of an event immediately."""
        for key, value in fields.items():
            if isinstance(value, int | float):
                self._writer.add_scalar(f"{event}/{key}", value, step)
        self._writer.flush()

    def close(self, exit_code: int) -> None:
        """Close the file."""
        with suppress(Exception):  # every event was flushed
            self._writer.close()


class WandbRun:
    """A run at Weights & Biases."""

    name = "Weights & Biases"

    def __init__(self, run: Any) -> None:
        self._run = run

    def log(self, event: str, step: int, fields: Mapping[str, object]) -> None:
        """Log the figures of an event."""
        self._run.log({"step": step, **{f"{event}/{key}": value for key, value in fields.items()}})

    def close(self, exit_code: int) -> None:
        """Finish the run, shown as failed if the exit code is not 0; its copy on the disk can be synced later."""
        self._run.finish(exit_code=exit_code)


Service = Board | WandbRun


def _start_run(config: Config) -> Any:
    """Start or resume the run at Weights & Biases, which shows the settings next to the curves."""
    import wandb  # noqa: PLC0415  (slow to import, and optional)

    online = config.tracking.wandb == "online"
    if online and not wandb.login(prompt=False):
        raise PermissionError("you are not logged in: run `wandb login`, or set tracking.wandb=offline")
    identity_file = config.run_folder / "wandb-id.txt"
    identity = identity_file.read_text(encoding="utf-8").strip() if identity_file.exists() else ""
    if not identity:  # also in a file that somebody emptied; it stays the same when the run is resumed
        identity = uuid.uuid4().hex[:12]
        write_text(identity_file, identity)
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", "nmt"),
        name=config.name,
        id=identity,
        resume="allow" if online else None,
        mode="online" if online else "offline",
        dir=config.run_folder,
        config=flatten(asdict(config)),
        settings=wandb.Settings(  # console: keep our own progress bar
            console="off", silent=True, init_timeout=INIT_SECONDS, finish_timeout=FINISH_SECONDS
        ),
    )
    run.define_metric("*", step_metric="step")  # a resumed run may log a step twice
    return run
