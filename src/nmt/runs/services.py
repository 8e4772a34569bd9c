"""Services that draw the curves of a run, in its main process: TensorBoard, and Weights & Biases.

An exception of a service is a warning, and never stops a run.
"""

import os
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from nmt.config.saved import flatten
from nmt.config.tree import Config
from nmt.packages import import_optional
from nmt.storage.files import write_text

INIT_SECONDS, FINISH_SECONDS = 60, 120
"""How long Weights & Biases may take to start and to finish."""


class Service(NamedTuple):
    """A service that a run has opened."""

    name: str
    log: Callable[[str, int, Mapping[str, object]], None]
    """Take an event, its step and its figures."""
    close: Callable[[int], None]
    """Take the exit code of the run."""

    def tell(self, method: Callable[..., None], *arguments: object) -> bool:
        """Call one of the methods; return False, and warn, if it fails."""
        try:
            method(*arguments)
        except Exception as error:
            _warn_without(self.name, error)
            return False
        return True


def open_services(config: Config, step: int | None) -> list[Service]:
    """Return the services that the settings ask for.

    Training goes on after `step`, and repeats what they have heard of later steps; None if nothing is trained.
    """
    found = []
    if config.tracking.tensorboard:
        found.append(_tensorboard(config, step))
    if config.tracking.wandb != "disabled":
        try:
            found.append(_wandb(config))
        except Exception as error:  # a service must not stop the run
            _warn_without("Weights & Biases", error)
    return found


def _warn_without(service: str, error: Exception) -> None:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    print(
        f"warning: {service} does not work ({reason}); continuing without it; the run's own files contain everything",
        file=sys.stderr,
        flush=True,
    )


def _tensorboard(config: Config, step: int | None) -> Service:
    """Write events to the run's folder for TensorBoard; a resumed run adds a file, which hides later events."""
    import_optional("tensorboard")
    from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 (slow to import, and optional)

    hidden_from = None if step is None else step + 1
    writer: Any = SummaryWriter(str(config.run_folder / "tensorboard"), purge_step=hidden_from)

    def log(event: str, step: int, fields: Mapping[str, object]) -> None:
        for key, value in fields.items():
            if isinstance(value, int | float):
                writer.add_scalar(f"{event}/{key}", value, step)
        writer.flush()

    return Service("TensorBoard", log, lambda exit_code: writer.close())


def _wandb(config: Config) -> Service:
    """Start or resume the run at Weights & Biases, which shows the settings next to the curves."""
    import wandb  # noqa: PLC0415  (slow to import, and optional)

    online = config.tracking.wandb == "online"
    if online and not wandb.login(prompt=False):
        raise PermissionError("you are not logged in: run `wandb login`, or set tracking.wandb=offline")
    identity_file = config.run_folder / "wandb-id.txt"
    if not identity_file.exists():  # it stays the same when the run is resumed
        write_text(identity_file, uuid.uuid4().hex[:12])
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", "nmt"),
        name=config.name,
        id=identity_file.read_text(encoding="utf-8"),
        resume="allow" if online else None,
        mode="online" if online else "offline",
        dir=config.run_folder,
        config=flatten(asdict(config)),
        settings=wandb.Settings(  # console: keep our own progress bar
            console="off", silent=True, init_timeout=INIT_SECONDS, finish_timeout=FINISH_SECONDS
        ),
    )
    run.define_metric("*", step_metric="step")  # a resumed run may log a step twice

    def log(event: str, step: int, fields: Mapping[str, object]) -> None:
        run.log({"step": step, **{f"{event}/{key}": value for key, value in fields.items()}})

    return Service("Weights & Biases", log, lambda exit_code: run.finish(exit_code=exit_code))
