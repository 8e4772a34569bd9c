"""One update of the weights (section 5 of the paper), and the loss on held-out text."""

import math
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple, TypedDict

import numpy as np
import torch
from torch import Tensor, nn

from nmt.compute import distributed
from nmt.compute.machine import Machine
from nmt.compute.signals import Interruptible
from nmt.compute.threads import concurrent_workers, run_in_threads
from nmt.config.schema import TrainingConfig
from nmt.data.loader import DataPosition, GlobalBatch, MicroBatch
from nmt.model.cpu.dropout import seed_thread_dropout
from nmt.model.interface import TranslationModel
from nmt.text.special import PAD
from nmt.training.freeze import trainable
from nmt.training.loss import Losses, smoothed_cross_entropy
from nmt.training.optimizer import build_optimizer
from nmt.training.schedule import learning_rate

MIN_MICRO_BATCH_TOKENS = 512
"""A micro-batch with fewer source or target tokens is not worth a thread with its own copy of the gradient."""


class Objective(nn.Module):
    """The training objective: the label-smoothed loss of the model, summed over the tokens of a micro-batch."""

    def __init__(self, model: TranslationModel, smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing

    def forward(self, batch: MicroBatch) -> Losses:
        """Return the losses, summed over the labels of the batch."""
        rows, projection = self.model.factors(self.model(batch.source, batch.target))
        return smoothed_cross_entropy(rows, projection, batch.labels, smoothing=self.smoothing, ignore=PAD)


class Statistics(NamedTuple):
    """Mean losses per target token over the steps that changed the weights; NaN if there were none."""

    loss: float
    """Label-smoothed cross-entropy, which training minimises."""
    nll: float
    """Negative log-likelihood; the perplexity is its exponential."""
    perplexity: float
    skipped: int
    """Steps that changed nothing because their gradient was not finite."""


class SavedTrainer(TypedDict):
    """The part of trainer.pt that belongs to the trainer."""

    step: int
    place: list[int]
    """The position in the data: epoch and batch."""
    optimizer: dict[str, Any]
    """The optimizer's state as PyTorch defines it."""
    window: Tensor
    """The sums of losses since the last log line."""


class Trainer:
    """The model, its optimizer and its position in the data."""

    def __init__(self, model: TranslationModel, config: TrainingConfig, machine: Machine, seed: int) -> None:
        self.model, self.config, self.machine, self.seed = model, config, machine, seed
        self.objective = distributed.parallel(
            Objective(model, config.label_smoothing), rounded=config.reduce_precision == "bf16"
        )
        self.optimizer = build_optimizer(model, config)
        self.concurrency = _concurrency(config, machine)
        """The number of micro-batches computed in parallel."""
        self.step = 0
        self.data_position = DataPosition()
        self.gradient_norm = torch.zeros((), device=machine.device)
        self._sums = _LossSums(machine.device)

    def update(self, batch: GlobalBatch, interruptible: Interruptible = nullcontext) -> None:
        """Train on one global batch.

        An exception in the `interruptible` block leaves everything that a checkpoint stores unchanged.
        """
        self.model.train()  # 5.4: residual dropout
        with interruptible():
            losses = self._add_gradients(batch)  # 5.1: the batch; 5.4: label smoothing
        self.step += 1
        finite = self._clip_gradient()
        self._step_optimizer(finite)  # 5.3: Adam and its learning rate
        self._sums.add_step(losses, batch.target_tokens, finite)
        self.data_position = batch.after

    def try_out(self, batch: MicroBatch) -> None:
        """Use as much memory as a step does, but change nothing."""
        parameters = trainable(self.model)
        adam_averages = (
            [] if self.optimizer.state else [torch.empty_like(each) for each in parameters for _ in range(2)]
        )
        devices = [self.machine.device] if self.machine.device.type == "cuda" else []
        self.model.train()
        try:
            with torch.random.fork_rng(devices):
                self._forward_and_backward(batch.to(self.machine.device))
        finally:
            self.optimizer.zero_grad(set_to_none=True)
            adam_averages.clear()

    def _forward_and_backward(self, batch: MicroBatch) -> None:
        if self.concurrency > 1:
            run_in_threads(lambda _: self._losses_and_gradients(batch, 1), range(self.concurrency))
            return
        with self.machine.autocast():
            losses = Objective(self.model, self.config.label_smoothing)(batch)
        losses.smoothed.backward()

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last step (section 5.3)."""
        return learning_rate(max(1, self.step), self.config, self.model.config.d_model)

    def take_statistics(self) -> Statistics:
        """Return the mean losses since the last call."""
        statistics = self._sums.statistics()
        self._sums = _LossSums(self.machine.device)
        return statistics

    def to_save(self) -> SavedTrainer:
        """Return the trainer's state, without the weights, for a checkpoint. All processes must call this."""
        return {
            "step": self.step,
            "place": list(self.data_position),
            "optimizer": self.optimizer.state_dict(),
            "window": self._sums.total(),
        }

    def restore(self, saved: SavedTrainer) -> None:
        """Continue from what a checkpoint stores."""
        self.step = saved["step"]
        self.data_position = DataPosition(*saved["place"])
        self.optimizer.load_state_dict(saved["optimizer"])
        if distributed.is_main():  # the saved sums are those of all processes together
            self._sums.sums += saved["window"].to(self._sums.sums)

    def _add_gradients(self, batch: GlobalBatch) -> list[Losses]:
        """Accumulate the gradient over this device's micro-batches."""
        if self.concurrency == 1:
            return [self._add_gradient(batch, index) for index in range(len(batch.micro_batches))]
        losses = []
        for first in range(0, len(batch.micro_batches), self.concurrency):
            indices = range(first, min(first + self.concurrency, len(batch.micro_batches)))
            for each, gradients in run_in_threads(partial(self._gradients_in_thread, batch), indices):
                losses.append(each)
                _accumulate(gradients, trainable(self.model))
        return losses

    def _gradients_in_thread(self, batch: GlobalBatch, index: int) -> tuple[Losses, list[Tensor]]:
        """Return the losses and gradients of a micro-batch without touching the accumulated gradient."""
        seed_thread_dropout(self._dropout_seed(index))
        return self._losses_and_gradients(batch.micro_batches[index], batch.target_tokens)

    def _losses_and_gradients(self, batch: MicroBatch, target_tokens: int) -> tuple[Losses, list[Tensor]]:
        # threads must not share cached casts, which would be nodes of several graphs
        with self.machine.autocast(cache=False):
            losses: Losses = self.objective(batch)
        gradients = torch.autograd.grad(losses.smoothed / target_tokens, trainable(self.model))
        return Losses(*(each.detach() for each in losses)), list(gradients)

    def _add_gradient(self, batch: GlobalBatch, index: int) -> Losses:
        """Add the gradient of a micro-batch."""
        torch.manual_seed(self._dropout_seed(index))
        last = index == len(batch.micro_batches) - 1
        with distributed.last_only(self.objective, last=last), self.machine.autocast():
            losses = self.objective(batch.micro_batches[index].to(self.machine.device))
        # gradients are averaged over the processes, but the loss of the global batch is a sum over them
        (losses.smoothed * (distributed.world_size() / batch.target_tokens)).backward()
        return Losses(*(each.detach() for each in losses))

    def _dropout_seed(self, index: int) -> int:
        """Return a seed that depends only on the position in training, so that no random state must be saved."""
        words = np.random.SeedSequence([self.seed, self.step + 1, distributed.rank(), index]).generate_state(2)
        return int(words[0]) << 32 | int(words[1])

    def _clip_gradient(self) -> Tensor:
        """Measure the gradient's norm, clip it if the settings say so, and return whether it is finite."""
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        self.gradient_norm = torch.nn.utils.get_total_norm(gradients)
        if self.config.clip_norm:
            torch.nn.utils.clip_grads_with_norm_(self.model.parameters(), self.config.clip_norm, self.gradient_norm)
        return self.gradient_norm.isfinite()

    def _step_optimizer(self, finite: Tensor) -> None:
        """Step the optimizer unless the gradient is not finite; the device decides, so nothing waits for it."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        self.optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class _LossSums:
    """Sums of losses since the last log line, kept on the device so that no step waits for it."""

    def __init__(self, device: torch.device) -> None:
        # smoothed loss, negative log-likelihood, target tokens, skipped steps
        self.sums = torch.zeros(4, dtype=torch.float64, device=device)

    def add_step(self, losses: Sequence[Losses], target_tokens: int, finite: Tensor) -> None:
        """Add the losses of a step, or count it as skipped if its gradient is not finite.

        A skipped step does not enter the sums because a single NaN would hide the losses of all other steps. All
        processes see the same gradient, so they agree.
        """
        before = self.sums.clone()
        for each in losses:
            self.sums[:2] += torch.stack(each)
        if distributed.is_main():  # counted once, because they are the tokens of the global batch
            self.sums[2] += target_tokens
        self.sums = torch.where(finite, self.sums, before)
        if distributed.is_main():
            self.sums[3] += ~finite

    def add_held_out(self, losses: Losses, target_tokens: Tensor) -> None:
        """Add the losses of a held-out batch, and the number of its tokens."""
        self.sums[:2] += torch.stack(losses)
        self.sums[2] += target_tokens

    def total(self) -> Tensor:
        """Return the sums over all processes."""
        return distributed.sum_over_processes(self.sums.clone()).cpu()

    def statistics(self) -> Statistics:
        """Return the means over all processes."""
        smoothed, nlls, tokens, skipped = self.total().tolist()
        if not tokens:
            return Statistics(math.nan, math.nan, math.nan, int(skipped))
        nll = nlls / tokens
        return Statistics(smoothed / tokens, nll, _perplexity(nll), int(skipped))


def _concurrency(config: TrainingConfig, machine: Machine) -> int:
    """Return how many micro-batches a process computes in parallel: one, unless a single process trains on a CPU."""
    if machine.device.type != "cpu" or distributed.world_size() > 1:
        return 1
    return concurrent_workers(
        min(config.device_tokens or config.batch_tokens, config.batch_tokens) // MIN_MICRO_BATCH_TOKENS
    )


def _accumulate(gradients: list[Tensor], parameters: list[nn.Parameter]) -> None:
    """Add gradients to those of the parameters; the order of the calls determines the last bits."""
    if parameters[0].grad is None:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
    else:
        torch._foreach_add_([parameter.grad for parameter in parameters if parameter.grad is not None], gradients)


def held_out_loss(
    model: TranslationModel,
    batches: Iterable[MicroBatch],
    config: TrainingConfig,
    machine: Machine,
    interruptible_together: Interruptible = nullcontext,
) -> Statistics:
    """Return the mean losses over the batches of all processes; each process passes its share."""
    objective = Objective(model, config.label_smoothing).eval()
    sums = _LossSums(machine.device)
    with interruptible_together(), torch.inference_mode(), machine.autocast():
        for batch in batches:
            sums.add_held_out(objective(batch.to(machine.device)), (batch.labels != PAD).sum())
    return sums.statistics()


def _perplexity(loss: float) -> float:
    return math.inf if loss >= 700 else math.exp(loss)
