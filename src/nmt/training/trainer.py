"""One update of the weights (section 5 of the paper)."""

from contextlib import nullcontext
from typing import Any, NotRequired, TypedDict

import torch
from torch import Tensor

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.compute.signals import Interruptible
from nmt.config.training import TrainingConfig
from nmt.data.loader import DataPosition, GlobalBatch, MicroBatch
from nmt.data.shapes import Shapes, micro_batch_shapes
from nmt.model.interface import TranslationModel
from nmt.training.gradient import BatchGradient
from nmt.training.loss_scale import LossScale
from nmt.training.objective import Objective
from nmt.training.optimizer import state_tensors
from nmt.training.recorded_passes import RecordedPasses
from nmt.training.replicas import Replicas
from nmt.training.schedule import learning_rate
from nmt.training.statistics import BadSteps, LossSums, Statistics


class SavedTrainer(TypedDict):
    """The part of trainer.pt that belongs to the trainer."""

    step: int
    place: list[int]
    """The position in the data: epoch and batch."""
    corpora: NotRequired[dict[str, list[int]]]
    """The pairs and tokens of each of several corpora that the model was trained on."""
    optimizer: dict[str, Any]
    """The optimizer's state as PyTorch defines it."""
    window: Tensor
    """The sums of losses since the last log line."""
    loss_scale: NotRequired[dict[str, Tensor]]
    """The factor of the loss, in fp16."""


class Trainer:
    """The model, its optimizer and its position in the data."""

    def __init__(
        self,
        model: TranslationModel,
        config: TrainingConfig,
        machine: Machine,
        seed: int,
        *,
        parallel: int = 0,
        replicas: type[Replicas] = Replicas,
        graphs: bool = False,
    ) -> None:
        """Train `model`, in `parallel` micro-batches if that is not 0; see `runtime.cuda_graphs` for `graphs`."""
        self.model, self.config, self.machine = model, config, machine
        objective = Objective(
            model, config.label_smoothing, guided_weight=config.guided_weight, sampled_words=config.sampled_words
        )
        self.replicas = (
            Replicas(objective, machine, config, averaged=False) if graphs else replicas(objective, machine, config)
        )
        self.working_weights = self.replicas.working_weights
        self.loss_scale = LossScale(machine.device) if machine.precision == torch.float16 else None
        self.optimizer = self.replicas.optimizer()
        passes = RecordedPasses(self.replicas) if graphs else None
        self.gradient = BatchGradient(self.replicas, machine, seed, parallel, passes, self.loss_scale)
        self.step, self.last_step = 0, config.steps
        """The step so far, and the one at which the run ends, which determine the learning rate."""
        self.data_position = DataPosition()
        self.corpora: dict[str, list[int]] = {}
        """The pairs and tokens of each of several corpora that the model was trained on."""
        self.gradient_norm = torch.zeros((), device=machine.device)
        self.bad_steps = BadSteps(machine.device)
        self._sums = LossSums(machine.device)

    def update(self, batch: GlobalBatch, interruptible: Interruptible = nullcontext) -> None:
        """Train on one global batch.

        An exception in the `interruptible` block leaves everything that a checkpoint stores unchanged.
        """
        self.model.train()  # 5.4: residual dropout
        with self.working_weights.active(), interruptible():
            losses = self.gradient.add(batch, self.step + 1)  # 5.1: the batch; 5.4: label smoothing
        self.step += 1
        finite = self._clip_gradient()
        self._step_optimizer(finite)  # 5.3: Adam and its learning rate
        self._sums.add_step(losses, batch.target_tokens, finite)
        for name, counts in batch.corpora.items():
            self.corpora[name] = [sum(both) for both in zip(counts, self.corpora.get(name, (0, 0)), strict=True)]
        self.data_position = batch.after

    def _clip_gradient(self) -> Tensor:
        """Measure the gradient's norm, clip it if the settings say so, and return whether it is finite."""
        gradients = self.replicas.gradients()
        if self.loss_scale is not None:
            self.loss_scale.unscale(gradients)
        self.gradient_norm = self.replicas.norm(gradients)
        if self.config.clip_norm:
            trained = self.replicas.trained.values()
            torch.nn.utils.clip_grads_with_norm_(trained, self.config.clip_norm, self.gradient_norm)
        finite = self.gradient_norm.isfinite()
        self.bad_steps.add(self.step, finite, finite if self.loss_scale is None else self.loss_scale.update(finite))
        return finite

    def _step_optimizer(self, finite: Tensor) -> None:
        """Step the optimizer unless the gradient is not finite; the device decides, so nothing waits for it."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        self.optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
        reads_it = getattr(self.optimizer, "_step_supports_amp_scaling", False) and self.machine.device.type != "mps"
        if reads_it or finite:  # other optimizers, such as a user's own, must wait for the device
            self.optimizer.step()
        self.model.zero_grad(set_to_none=True)  # also those that the optimizer does not know of

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last step (section 5.3)."""
        return learning_rate(max(1, self.step), self.config, self.model.config.d_model, self.last_step)

    def shapes(self, device_tokens: int) -> Shapes:
        """See `micro_batch_shapes`."""
        return micro_batch_shapes(self.model, self.config, self.machine, device_tokens)

    def try_out(self, batch: MicroBatch) -> None:
        """Use as much memory as a step does, but change nothing."""
        state = [] if self.optimizer.state else [torch.empty_like(each) for each in state_tensors(self.optimizer)]
        devices = [self.machine.device] if self.machine.device.type == "cuda" else []
        self.model.train()
        try:
            with torch.random.fork_rng(devices), self.working_weights.active():
                self.gradient.try_out(batch.to(self.machine.device))
        finally:
            self.model.zero_grad(set_to_none=True)
            state.clear()

    def take_statistics(self) -> Statistics:
        """Return the mean losses since the last call."""
        statistics = self._sums.statistics()
        self._sums = LossSums(self.machine.device)
        return statistics

    def to_save(self) -> SavedTrainer:
        """Return the rest of the trainer's state for a checkpoint. All processes must call this."""
        saved: SavedTrainer = {
            "step": self.step,
            "place": [*self.data_position],
            "optimizer": self.replicas.optimizer_state(self.optimizer),
            "window": self._sums.total(),
            "corpora": dict(self.corpora),
        }
        if self.loss_scale is not None:
            saved["loss_scale"] = self.loss_scale.to_save()
        return saved

    def restore(self, saved: SavedTrainer) -> None:
        """Continue from what a checkpoint stores; the model has its weights already."""
        self.step = saved["step"]
        self.data_position = DataPosition(*saved["place"])
        self.corpora = saved.get("corpora", {})
        if self.loss_scale is not None and "loss_scale" in saved:
            self.loss_scale.restore(saved["loss_scale"])
        self.replicas.load_optimizer_state(self.optimizer, saved["optimizer"])
        if distributed.is_main():  # the saved sums are those of all processes together
            self._sums.sums += saved["window"].to(self._sums.sums.dtype).to(self._sums.sums.device)
