"""Write the checkpoints of a run during training."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_map_only

from nmt.compute import distributed
from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, CheckpointRecord
from nmt.runs.checkpoints import Checkpoints
from nmt.storage.remote import store_changes
from nmt.training.opening import TrainingData
from nmt.training.state import TrainingState


class CheckpointManager:
    """Writes and prunes checkpoints; only the main process writes.

    With an accelerator, a thread writes a copy of the state while training continues. On a CPU the copy would cost
    more memory than the overlap is worth.
    """

    def __init__(self, checkpoints: Checkpoints, template: Checkpoint, *, in_background: bool) -> None:
        """Write checkpoints to the folder of a run.

        Args:
            checkpoints: The checkpoints of the run.
            template: What all of them contain: settings, tokenizer, origin, and the fingerprint of the training data.
            in_background: Whether to write while training continues.
        """
        self.checkpoints, self._template = checkpoints, template
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint") if in_background else None
        self._pending: Future[None] | None = None

    def save(self, state: TrainingState, valid: Mapping[str, float], *, interim: bool, only_best: bool = False) -> None:
        """Write a checkpoint, or start writing it in the background. All processes must call this, and wait for it.

        Args:
            state: The state of training.
            valid: The figures of this step's validation; empty if it was not validated.
            interim: Whether the checkpoint is saved only because the run is interrupted.
            only_best: Whether it is saved only because it is the best so far.
        """
        meta = replace(self._template.meta, step=state.trainer.step, valid=valid, interim=interim, only_best=only_best)
        trainer = {**state.to_save(), **(self._template.trainer or {})}
        checkpoint = replace(self._template, meta=meta, weights=state.trainer.replicas.weights(), trainer=trainer)
        with distributed.together():
            if distributed.is_main():
                self._wait_for_writer()
                if self._writer is None:
                    self._write(checkpoint)
                else:
                    weights, trainer = copy_to_cpu((checkpoint.weights, trainer))
                    copied = replace(checkpoint, weights=weights, trainer=trainer)
                    self._pending = self._writer.submit(self._write, copied)

    def check_writer(self) -> None:
        """Raise the error of a checkpoint that the background could not write, instead of training on without it."""
        if self._pending is not None and self._pending.done():
            self._wait_for_writer()

    def wait_until_saved(self) -> None:
        """Wait until all checkpoints are on the disk, in all processes."""
        with distributed.together():
            self._wait_for_writer()

    def close(self) -> None:
        """Wait for the writer, even after an error: no other process may use the run's folder before it is done."""
        if self._writer is not None:
            self._writer.shutdown()

    def _wait_for_writer(self) -> None:
        """Wait for the writer, and raise its error if it had one."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _write(self, checkpoint: Checkpoint) -> None:
        self.checkpoints.save(checkpoint)
        store_changes(self.checkpoints.run_folder)


def checkpoint_manager(
    config: Config, data: TrainingData, origin: CheckpointRecord | None, *, in_background: bool
) -> CheckpointManager:
    """Return the checkpoint manager of a run, given the model that it began from."""
    template = Checkpoint(
        meta=CheckpointMeta(step=0, origin=origin),
        weights={},
        trainer={"data": data.fingerprint},
        config_text=to_yaml(config),
        tokenizer_files=data.tokenizer.files,
    )
    checkpoints = Checkpoints(config.run_folder, config.training.keep_last, config.training.keep_best)
    return CheckpointManager(checkpoints, template, in_background=in_background)


def copy_to_cpu(value: Any) -> Any:
    """Return a copy of nested containers whose tensors are in memory that training does not write to."""
    return tree_map_only(Tensor, lambda tensor: tensor.detach().to("cpu", copy=True), value)
