"""Log the events of a run to metrics.jsonl and, if the settings say so, to Weights & Biases and TensorBoard."""

import json
import math
import re
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nmt.config.schema import TrackingConfig
from nmt.errors import UserError
from nmt.runs.layout import RunLayout
from nmt.runs.metrics import truncate_after
from nmt.runs.tensorboard import Board
from nmt.storage.files import write_text

WANDB = "Weights & Biases"
WANDB_INIT_SECONDS = 60
WANDB_FINISH_SECONDS = 120
COLUMNS = ("source", "translation", "reference")


class NullTracker:
    """A tracker that logs nothing, for all processes but the main one."""

    def log(self, event: str, step: int, **fields: Any) -> None:
        """Log an event."""

    def close(self, exit_code: int = 0) -> None:
        """Log the end of the run with its exit code."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(_exit_code(error))


class Tracker(NullTracker):
    """Writes events to the run's metrics.jsonl, Weights & Biases and TensorBoard."""

    def __init__(
        self, run_folder: Path, config: TrackingConfig, *, name: str, settings: Mapping[str, Any], step: int
    ) -> None:
        """Open a run's metrics.

        Args:
            run_folder: The folder of the run.
            config: Whether and how to use Weights & Biases and TensorBoard.
            name: The name of the run.
            settings: All settings, which Weights & Biases shows next to the curves.
            step: The number of updates so far; events of later steps are dropped because they will be logged again.
        """
        self._path = RunLayout(run_folder).metrics
        self._board = Board(run_folder, step) if config.tensorboard else None
        run_folder.mkdir(parents=True, exist_ok=True)
        truncate_after(self._path, step)
        try:
            self._file = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise _cannot_write(self._path, error) from error
        self._wandb = None if config.wandb == "disabled" else _start_wandb(run_folder, config, name, settings)

    def log(self, event: str, step: int, **fields: Any) -> None:
        """Write one event immediately."""
        line = json.dumps(_json_value({"event": event, "step": step, "time": time.time(), **fields}), allow_nan=False)
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as error:
            raise _cannot_write(self._path, error) from error
        if self._board is not None:
            try:
                self._board.log(event, step, fields)
            except Exception as error:  # a tracker must not stop the run
                self._board = None
                _warn_without("TensorBoard", error)
        if self._wandb is not None:
            try:
                self._wandb.log({"step": step, **{f"{event}/{key}": value for key, value in fields.items()}})
            except Exception as error:  # a tracker must not stop the run
                self._wandb = None
                _warn_without(WANDB, error)

    def close(self, exit_code: int = 0) -> None:
        """Close the file and finish at Weights & Biases, whose own copy on the disk can be synced later."""
        with suppress(OSError):  # every event was flushed, and errors have been reported
            self._file.close()
        if self._board is not None:
            with suppress(Exception):  # every event was flushed
                self._board.close()
        if self._wandb is not None:
            _finish(self._wandb, exit_code)
            self._wandb = None


@dataclass(frozen=True, slots=True)
class Scored:
    """The results of an evaluation, for Weights & Biases and TensorBoard."""

    split: str
    """The split, prefixed with the name of the checkpoint if that is not the run's own (last/test)."""
    step: int
    """The step of the checkpoint."""
    scores: Mapping[str, float]
    signatures: Mapping[str, str]
    """The signature of each score."""
    translations: Sequence[tuple[str, str, str]]
    """Sources, translations and references of some sentences."""
    checkpoint: str
    """The name of the checkpoint or export that was scored."""
    files: Sequence[Path]
    """The files of the checkpoint or export, without the training state."""


def tell_scored(
    run_folder: Path, config: TrackingConfig, *, name: str, settings: Mapping[str, Any], scored: Scored
) -> None:
    """Log an evaluation to Weights & Biases and TensorBoard if the settings say so."""
    if config.tensorboard:
        board = Board(run_folder, scored.step)
        try:
            board.log(scored.split, scored.step, scored.scores)
            board.table(f"{scored.split}/translations", scored.step, COLUMNS, scored.translations)
            board.close()
        except Exception as error:
            _warn_without("TensorBoard", error)
    run = None if config.wandb == "disabled" else _start_wandb(run_folder, config, name, settings)
    if run is not None:
        try:
            _log_scores_to_wandb(run, config, name, scored)
        except Exception as error:
            _warn_without(WANDB, error)
        _finish(run)


def _log_scores_to_wandb(run: Any, config: TrackingConfig, name: str, scored: Scored) -> None:
    import wandb  # noqa: PLC0415

    table = [[key, score, scored.signatures[key]] for key, score in scored.scores.items()]
    run.log(
        {
            "step": scored.step,
            **{f"{scored.split}/{key}": score for key, score in scored.scores.items()},
            f"{scored.split}/scores": wandb.Table(columns=["score", "value", "signature"], data=table),
            f"{scored.split}/translations": wandb.Table(columns=list(COLUMNS), data=[*map(list, scored.translations)]),
        }
    )
    if config.artifact:
        artifact = wandb.Artifact(re.sub(r"[^\w.-]", "-", name), type="model", metadata={"step": scored.step})
        for file in scored.files:
            if not file.is_symlink():  # it could point to a file that must not be uploaded
                artifact.add_file(str(file), skip_cache=True)
        run.log_artifact(artifact, aliases=[re.sub(r"[^\w.-]", "-", scored.checkpoint)])


def _json_value(value: Any) -> Any:
    """Return a value for JSON, with null for infinity and NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    return value


def _cannot_write(path: Path, error: OSError) -> UserError:
    return UserError(f"cannot write {path}: {error.strerror}. Free some space or choose another folder, and run again")


def _start_wandb(run_folder: Path, config: TrackingConfig, name: str, settings: Mapping[str, Any]) -> Any:
    """Start or resume the run at Weights & Biases; return None with a warning if that fails."""
    try:
        import wandb  # noqa: PLC0415  (slow to import, and optional)

        online = config.wandb == "online"
        if online and not wandb.login(prompt=False):
            raise PermissionError("you are not logged in: run `wandb login`, or set tracking.wandb=offline")
        run = wandb.init(
            project=config.project,
            entity=config.entity or None,
            name=name,
            id=_wandb_id(run_folder),
            resume="allow" if online else None,
            mode="online" if online else "offline",
            dir=run_folder,
            config=dict(settings),
            settings=wandb.Settings(
                console="off",  # keep our own progress bar
                silent=True,
                init_timeout=WANDB_INIT_SECONDS,
                finish_timeout=WANDB_FINISH_SECONDS,
            ),
        )
        run.define_metric("*", step_metric="step")  # a resumed run may log a step twice
    except Exception as error:
        _warn_without(WANDB, error)
        return None
    return run


def _finish(run: Any, exit_code: int = 0) -> None:
    """Finish a run at Weights & Biases, which shows it as failed if the exit code is not 0."""
    try:
        run.finish(exit_code=exit_code)
    except Exception as error:
        _warn_without(WANDB, error)


def _exit_code(error: BaseException | None) -> int:
    """Return the exit code of a process that ends with this error."""
    match error:
        case None | SystemExit(code=None):
            return 0
        case SystemExit(code=int(code)):
            return code
        case _:
            return 1


def _wandb_id(run_folder: Path) -> str:
    """Return the run's id at Weights & Biases, which stays the same when the run is resumed."""
    file = RunLayout(run_folder).wandb_id
    if not file.exists():
        write_text(file, uuid.uuid4().hex[:12])
    return file.read_text(encoding="utf-8").strip()


def _warn_without(service: str, error: Exception) -> None:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    print(
        f"warning: {service} does not work ({reason}); continuing without it; the run's own files contain everything",
        file=sys.stderr,
        flush=True,
    )
