"""Log a run to Weights & Biases."""

import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nmt.config.commands import TrackingConfig
from nmt.config.saved import flatten
from nmt.config.tree import Config
from nmt.runs.listener import Listener, Scored, warn_without
from nmt.storage.files import write_text

INIT_SECONDS = 60
FINISH_SECONDS = 120


def wandb_run(config: Config) -> "WandbRun | None":
    """Return the run at Weights & Biases; None, with a warning, if it cannot start."""
    try:
        run = start_run(config.run_folder, config.tracking, config.name, flatten(asdict(config)))
    except Exception as error:  # a service must not stop the run
        warn_without(WandbRun.service, error)
        return None
    return WandbRun(run, config.tracking, config.name)


class WandbRun(Listener):
    """A run at Weights & Biases."""

    service = "Weights & Biases"

    def __init__(self, run: Any, config: TrackingConfig, name: str) -> None:
        self._run, self._config, self._name = run, config, name

    def log(self, event: str, step: int, fields: Mapping[str, Any]) -> None:
        """See `Listener.log`."""
        self._run.log({"step": step, **{f"{event}/{key}": value for key, value in fields.items()}})

    def log_scores(self, scored: Scored) -> None:
        """Log the scores and translations, and upload the checkpoint if the settings say so."""
        import wandb  # noqa: PLC0415

        split, translations = scored.split, [list(each) for each in scored.translations]
        table = [[key, score, scored.signatures[key]] for key, score in scored.scores.items()]
        self._run.log(
            {
                "step": scored.step,
                **{f"{split}/{key}": score for key, score in scored.scores.items()},
                f"{split}/scores": wandb.Table(columns=["score", "value", "signature"], data=table),
                f"{split}/translations": wandb.Table(columns=["source", "translation", "reference"], data=translations),
            }
        )

    def close(self, exit_code: int) -> None:
        """Finish the run, shown as failed if the exit code is not 0; its copy on the disk can be synced later."""
        self._run.finish(exit_code=exit_code)


def start_run(run_folder: Path, config: TrackingConfig, name: str, settings: Mapping[str, Any]) -> Any:
    """Start or resume the run at Weights & Biases, which shows the settings next to the curves."""
    import wandb  # noqa: PLC0415  (slow to import, and optional)

    online = config.wandb == "online"
    if online and not wandb.login(prompt=False):
        raise PermissionError("you are not logged in: run `wandb login`, or set tracking.wandb=offline")
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", "nmt"),
        name=name,
        id=_run_id(run_folder),
        resume="allow" if online else None,
        mode="online" if online else "offline",
        dir=run_folder,
        config=dict(settings),
        settings=wandb.Settings(
            console="off",  # keep our own progress bar
            silent=True,
            init_timeout=INIT_SECONDS,
            finish_timeout=FINISH_SECONDS,
        ),
    )
    run.define_metric("*", step_metric="step")  # a resumed run may log a step twice
    return run


def _run_id(run_folder: Path) -> str:
    """Return the run's id at Weights & Biases, which stays the same when the run is resumed."""
    file = run_folder / "wandb-id.txt"
    identity = file.read_text(encoding="utf-8").strip() if file.exists() else ""
    if not identity:  # also in a file that somebody emptied
        identity = uuid.uuid4().hex[:12]
        write_text(file, identity)
    return identity


def _plain(name: str) -> str:
    """Return a name without the characters that Weights & Biases refuses."""
    return re.sub(r"[^\w.-]", "-", name)
