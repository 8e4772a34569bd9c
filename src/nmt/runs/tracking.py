"""What happens in a run, told as it happens: metrics.jsonl always, Weights & Biases and TensorBoard on request."""

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
from nmt.runs.tensorboard import Board
from nmt.storage.files import write_text

METRICS = "metrics.jsonl"
WANDB = "Weights & Biases"
WANDB_ID = "wandb-id.txt"
WANDB_INIT_SECONDS = 60
WANDB_FINISH_SECONDS = 120
COLUMNS = ("source", "translation", "reference")


class NullTracker:
    """Tells nobody: for the processes beside the first one of a run."""

    def log(self, event: str, step: int, **fields: Any) -> None:
        """Tell that something happened."""

    def close(self, exit_code: int = 0) -> None:
        """Report that the run has ended, and with which exit code."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(_exit_code(error))


class Tracker(NullTracker):
    """Writes events to the run's metrics.jsonl, and to Weights & Biases where asked to."""

    def __init__(
        self, run_folder: Path, config: TrackingConfig, *, name: str, settings: Mapping[str, Any], step: int
    ) -> None:
        """Open a run's metrics.

        Args:
            run_folder: Where the run lies.
            config: Whether and how to use Weights & Biases and TensorBoard.
            name: Name of the run.
            settings: All settings, to be shown beside the curves.
            step: Updates made so far; what was told of later ones is going to happen again, so it is dropped.
        """
        self._path = run_folder / METRICS
        self._board = Board(run_folder, step) if config.tensorboard else None
        run_folder.mkdir(parents=True, exist_ok=True)
        truncate_after(self._path, step)
        try:
            self._file = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise _cannot_write(self._path, error) from error
        self._wandb = None if config.wandb == "disabled" else _start_wandb(run_folder, config, name, settings)

    def log(self, event: str, step: int, **fields: Any) -> None:
        """Write one event, at once."""
        line = json.dumps(_json_value({"event": event, "step": step, "time": time.time(), **fields}), allow_nan=False)
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except OSError as error:
            raise _cannot_write(self._path, error) from error
        if self._board is not None:
            try:
                self._board.log(event, step, fields)
            except Exception as error:  # neither does it stop for this
                self._board = None
                _warn_without("TensorBoard", error)
        if self._wandb is not None:
            try:
                self._wandb.log({"step": step, **{f"{event}/{key}": value for key, value in fields.items()}})
            except Exception as error:  # whatever is wrong there, the run goes on
                self._wandb = None
                _warn_without(WANDB, error)

    def close(self, exit_code: int = 0) -> None:
        """Close the file, and let Weights & Biases finish; its own copy on the disk can be synced later."""
        with suppress(OSError):  # each event was flushed; what could not be written has been told
            self._file.close()
        if self._board is not None:
            with suppress(Exception):  # each event was flushed
                self._board.close()
        if self._wandb is not None:
            _finish(self._wandb, exit_code)
            self._wandb = None


@dataclass(frozen=True, slots=True)
class Scored:
    """An evaluation, as others are told of it."""

    split: str
    """Name of the split; of what is not the run's own checkpoint, after the name of that (last/test)."""
    step: int
    """Updates that the checkpoint has seen."""
    scores: Mapping[str, float]
    signatures: Mapping[str, str]
    """How each score was worked out."""
    translations: Sequence[tuple[str, str, str]]
    """Source, translation and reference of some sentences."""
    checkpoint: str
    """Name of the checkpoint or export that was scored."""
    files: Sequence[Path]
    """The files of the checkpoint or export, without the state of training."""


def tell_scored(
    run_folder: Path, config: TrackingConfig, *, name: str, settings: Mapping[str, Any], scored: Scored
) -> None:
    """Tell Weights & Biases and TensorBoard of an evaluation, where asked to; its own files are written elsewhere."""
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
            _tell_wandb(run, config, name, scored)
        except Exception as error:
            _warn_without(WANDB, error)
        _finish(run)


def _tell_wandb(run: Any, config: TrackingConfig, name: str, scored: Scored) -> None:
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
            if not file.is_symlink():  # it could lead to a file that was never meant to be uploaded
                artifact.add_file(str(file), skip_cache=True)
        run.log_artifact(artifact, aliases=[re.sub(r"[^\w.-]", "-", scored.checkpoint)])


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read the events of a metrics.jsonl; a last line that a kill cut short is left out."""
    return [event for _, event in _events(path)]


def truncate_after(path: Path, step: int) -> None:
    """Drop the events of later steps, and a last line that a kill cut short, from a metrics.jsonl."""
    if not path.exists():
        return
    kept = "".join(line + "\n" for line, event in _events(path) if event["step"] <= step)
    if kept.encode() != path.read_bytes():
        write_text(path, kept)


def _events(path: Path) -> list[tuple[str, dict[str, Any]]]:
    try:
        *lines, last = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}. Move it out of the way and run again") from error
    events = []
    for number, line in enumerate([*lines, last], start=1):
        try:
            event = json.loads(line)
            if not isinstance(event["step"], int):
                raise TypeError("step is no number")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            if number > len(lines):
                break
            raise UserError(f"{path}, line {number} is damaged: delete that line (the others are kept)") from error
        events.append((line.decode(), event))
    return events


def _json_value(value: Any) -> Any:
    """JSON knows neither infinity nor NaN: null stands for both."""
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
    """Start or continue the run's twin at Weights & Biases; None where that fails, as it must not stop the run."""
    try:
        import wandb  # noqa: PLC0415  (slow to import, and not everybody's)

        online = config.wandb == "online"
        if online and not wandb.login(prompt=False):
            raise PermissionError("nobody is logged in: run `wandb login`, or set tracking.wandb=offline")
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
                console="off",  # the progress bar stays ours
                silent=True,
                init_timeout=WANDB_INIT_SECONDS,
                finish_timeout=WANDB_FINISH_SECONDS,
            ),
        )
        run.define_metric("*", step_metric="step")  # a resumed run may tell a step twice
    except Exception as error:
        _warn_without(WANDB, error)
        return None
    return run


def _finish(run: Any, exit_code: int = 0) -> None:
    """Finish a run at Weights & Biases, which shows one with another exit code than 0 as failed."""
    try:
        run.finish(exit_code=exit_code)
    except Exception as error:
        _warn_without(WANDB, error)


def _exit_code(error: BaseException | None) -> int:
    """Return the exit code of a process that this error ends."""
    match error:
        case None | SystemExit(code=None):
            return 0
        case SystemExit(code=int(code)):
            return code
        case _:
            return 1


def _wandb_id(run_folder: Path) -> str:
    """The same for all parts of a run that was interrupted and resumed."""
    file = run_folder / WANDB_ID
    if not file.exists():
        write_text(file, uuid.uuid4().hex[:12])
    return file.read_text(encoding="utf-8").strip()


def _warn_without(whom: str, error: Exception) -> None:
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    print(
        f"warning: {whom} does not work ({reason}); going on without it, the run's own files have everything",
        file=sys.stderr,
        flush=True,
    )
