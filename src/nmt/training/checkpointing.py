"""A run's checkpoints: written, thinned out and gone back to."""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from nmt.compute import distributed
from nmt.errors import UserError
from nmt.runs.checkpoints import Checkpoints, load_last_good
from nmt.training.trainer import Trainer


@dataclass(frozen=True, slots=True)
class CheckpointContents:
    """What all checkpoints of a run hold besides the weights and the state of training."""

    tokenizer_files: Sequence[Path]
    config_text: str
    """All settings, as YAML."""
    data: str
    """Stands for the training data, token by token."""


class CheckpointManager:
    """Keeps a trainer's checkpoints; only the main process writes any.

    An accelerator trains on while what was copied from it is written. A CPU has better things to do than to hold
    everything twice.
    """

    def __init__(
        self, trainer: Trainer, checkpoints: Checkpoints, contents: CheckpointContents, *, aside: bool
    ) -> None:
        """If `aside`, checkpoints are written while training goes on."""
        self.trainer, self.checkpoints, self.contents = trainer, checkpoints, contents
        self._writers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint") if aside else None
        self._writing: Future[None] | None = None
        self.write_seconds = 0.0
        """The longest that writing a checkpoint has taken."""

    def save(self, step: int, state: Mapping[str, Any], valid: Mapping[str, float], *, interim: bool) -> None:
        """Write a checkpoint, or begin to, given the trainer's state and what validation said.

        An interim one is what only an interruption calls for.
        """
        if not distributed.is_main():
            return
        self._join()
        weights = self.trainer.model.state_dict()
        if self._writers is None:
            self._write(step, weights, state, valid, interim)
        else:
            self._writing = self._writers.submit(self._write, step, _copy(weights), _copy(state), valid, interim)

    def wait_until_saved(self) -> None:
        """Wait until what was saved lies on the disk, in all processes."""
        with distributed.together():
            self._join()

    def restore_before(self, before: int) -> int:
        """Give the trainer back what it was at the last checkpoint before a step, and say which step's that was."""
        self.wait_until_saved()
        with distributed.together():
            checkpoint = load_last_good(self.checkpoints.run_folder, before)
            if checkpoint is None or checkpoint.trainer is None:
                raise UserError(
                    f"training diverged at step {before}, before its first checkpoint: train under another name= "
                    "with training.clip_norm=1, a lower training.learning_rate or more training.warmup_steps"
                )
        self.trainer.model.load_state_dict(checkpoint.weights)
        self.trainer.load_state(checkpoint.trainer["trainer"])
        return checkpoint.step

    def close(self) -> None:
        """Let the writer end, whatever became of training: nobody else may have the run's folder before."""
        if self._writers is not None:
            self._writers.shutdown()

    def _join(self) -> None:
        """Wait for the writer; its errors are raised here."""
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _write(
        self,
        step: int,
        weights: Mapping[str, Tensor],
        state: Mapping[str, Any],
        valid: Mapping[str, float],
        interim: bool,
    ) -> None:
        began = time.monotonic()
        self.checkpoints.save(
            step,
            weights=weights,
            trainer={**state, "data": self.contents.data},
            tokenizer_files=self.contents.tokenizer_files,
            config_text=self.contents.config_text,
            valid=valid,
            interim=interim,
        )
        config = self.trainer.config
        self.checkpoints.prune(config.keep_last, config.keep_best)
        self.write_seconds = max(self.write_seconds, time.monotonic() - began)


def _copy(value: Any) -> Any:
    """The same, with tensors in the CPU's memory that nobody else writes to."""
    match value:
        case Tensor():
            return value.detach().to("cpu", copy=True)
        case dict():
            return {key: _copy(each) for key, each in value.items()}
        case list() | tuple():
            return type(value)(_copy(each) for each in value)
    return value
