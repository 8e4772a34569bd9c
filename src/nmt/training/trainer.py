"""One update of the weights (section 5 of the paper), and the loss on held-out text."""

import math
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

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
from nmt.model.transformer import Transformer
from nmt.text.special import PAD
from nmt.training.loss import Losses, smoothed_cross_entropy
from nmt.training.optimizer import build_optimizer
from nmt.training.schedule import learning_rate

MIN_MICRO_BATCH_TOKENS = 512
"""Tokens a side below which a part of a batch is too small to be worth the copies of weights and gradient it takes."""


class Objective(nn.Module):
    """What is minimised: the model's label-smoothed loss, summed over the tokens of a batch."""

    def __init__(self, model: Transformer, smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.smoothing = smoothing

    def forward(self, batch: MicroBatch) -> Losses:
        """Losses summed over the batch's labels."""
        output = self.model(batch.source, batch.target)
        return smoothed_cross_entropy(output, self.model.projection, batch.labels, smoothing=self.smoothing, ignore=PAD)


class Means(NamedTuple):
    """Mean losses per target token over the steps that changed the weights; NaN if there were none."""

    loss: float
    """Label-smoothed: what training minimises."""
    nll: float
    """Negative log-likelihood; the perplexity is its exponential."""
    perplexity: float
    skipped: int
    """Steps whose gradient was not finite: they changed nothing."""


class Trainer:
    """The model, its optimizer and its place in the data."""

    def __init__(self, model: Transformer, config: TrainingConfig, machine: Machine, seed: int) -> None:
        self.model, self.config, self.machine, self.seed = model, config, machine, seed
        self.objective = distributed.parallel(
            Objective(model, config.label_smoothing), rounded=config.reduce_precision == "bf16"
        )
        self.optimizer = build_optimizer(model, config)
        self.parts = _parts_at_once(config, machine)
        self.step = 0
        self.data_position = DataPosition()
        self.gradient_norm = torch.zeros((), device=machine.device)
        self._window = _Window(machine.device)

    def update(self, work: GlobalBatch, interruptible: Interruptible = nullcontext) -> None:
        """Train on one global batch; what is raised in the `stoppable` part leaves all that is saved as it was."""
        self.model.train()
        with interruptible():
            losses = self._add_gradients(work)
        self.step += 1
        finite = self._scale_gradient()
        self._apply(finite)
        self._window.add_step(losses, work.target_tokens, finite)
        self.data_position = work.after

    def try_out(self, batch: MicroBatch) -> None:
        """Go forward and backward as in a step, with memory set aside for all that a step holds; change nothing."""
        parameters = list(self.model.parameters())
        spare = [] if self.optimizer.state else [torch.empty_like(each) for each in parameters for _ in range(2)]
        devices = [self.machine.device] if self.machine.device.type == "cuda" else []
        self.model.train()
        try:
            with torch.random.fork_rng(devices):
                self._try(batch.to(self.machine.device))
        finally:
            self.optimizer.zero_grad(set_to_none=True)
            spare.clear()

    def _try(self, batch: MicroBatch) -> None:
        if self.parts > 1:
            run_in_threads(lambda _: self._losses_and_gradients(batch, 1), range(self.parts))
            return
        with self.machine.autocast():
            losses = Objective(self.model, self.config.label_smoothing)(batch)
        losses.smoothed.backward()

    @property
    def learning_rate(self) -> float:
        """The rate of the last step."""
        return learning_rate(max(1, self.step), self.config, self.model.config.d_model)

    def means(self) -> Means:
        """Means over the steps since the last call."""
        means = self._window.means()
        self._window = _Window(self.machine.device)
        return means

    def state(self) -> dict[str, Any]:
        """All that training needs, beside the weights, to go on exactly. Every process must ask for it."""
        return {
            "step": self.step,
            "place": list(self.data_position),
            "optimizer": self.optimizer.state_dict(),
            "window": self._window.total(),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.step = state["step"]
        self.data_position = DataPosition(*state["place"])
        self.optimizer.load_state_dict(state["optimizer"])
        if distributed.is_main():  # it stands for all processes
            self._window.sums += state["window"].to(self._window.sums)

    def _add_gradients(self, work: GlobalBatch) -> list[Losses]:
        """Go forward and backward over all slices of the batch that are this device's."""
        if self.parts == 1:
            return [self._add_gradient(work, index) for index in range(len(work.micro_batches))]
        losses = []
        for first in range(0, len(work.micro_batches), self.parts):
            indices = range(first, min(first + self.parts, len(work.micro_batches)))
            for each, gradients in run_in_threads(partial(self._gradients_aside, work), indices):
                losses.append(each)
                _add(gradients, list(self.model.parameters()))
        return losses

    def _gradients_aside(self, work: GlobalBatch, index: int) -> tuple[Losses, list[Tensor]]:
        """Go forward and backward over a slice in a thread of its own, which leaves the sum of gradients alone."""
        seed_thread_dropout(self._dropout_seed(index))
        return self._losses_and_gradients(work.micro_batches[index], work.target_tokens)

    def _losses_and_gradients(self, batch: MicroBatch, target_tokens: int) -> tuple[Losses, list[Tensor]]:
        # casts that threads shared would be nodes of the graphs of both
        with self.machine.autocast(cache=False):
            losses: Losses = self.objective(batch)
        gradients = torch.autograd.grad(losses.smoothed / target_tokens, list(self.model.parameters()))
        return Losses(*(each.detach() for each in losses)), list(gradients)

    def _add_gradient(self, work: GlobalBatch, index: int) -> Losses:
        """Go forward and backward over a slice of the batch."""
        torch.manual_seed(self._dropout_seed(index))
        with distributed.last_only(self.objective, last=index == len(work.micro_batches) - 1), self.machine.autocast():
            losses = self.objective(work.micro_batches[index].to(self.machine.device))
        # gradients are averaged over the processes, and each holds a part of the batch's sum
        (losses.smoothed * (distributed.world_size() / work.target_tokens)).backward()
        return Losses(*(each.detach() for each in losses))

    def _dropout_seed(self, index: int) -> int:
        """Randomness follows from the place in training alone, so there is no random state to keep."""
        words = np.random.SeedSequence([self.seed, self.step + 1, distributed.rank(), index]).generate_state(2)
        return int(words[0]) << 32 | int(words[1])

    def _scale_gradient(self) -> Tensor:
        """Note the gradient's norm, clip it if asked, and tell whether it is finite."""
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        self.gradient_norm = torch.nn.utils.get_total_norm(gradients)
        if self.config.clip_norm:
            torch.nn.utils.clip_grads_with_norm_(self.model.parameters(), self.config.clip_norm, self.gradient_norm)
        return self.gradient_norm.isfinite()

    def _apply(self, finite: Tensor) -> None:
        """Step the optimizer, unless the gradient is not finite; decided on the device, without waiting for it."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        self.optimizer.found_inf = (~finite).float()  # type: ignore[attr-defined]
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class _Window:
    """Sums since the last line of the log; on the device, so that nobody waits for them until then."""

    def __init__(self, device: torch.device) -> None:
        # smoothed loss, likelihood, target tokens, skipped steps
        self.sums = torch.zeros(4, dtype=torch.float64, device=device)

    def add_step(self, losses: Sequence[Losses], target_tokens: int, finite: Tensor) -> None:
        """Add the losses of a step if its gradient is finite, which all processes agree on; else count it as skipped.

        A single NaN would hide the losses of all other steps.
        """
        before = self.sums.clone()
        for each in losses:
            self.sums[:2] += torch.stack(each)
        if distributed.is_main():  # the number of tokens is that of the whole batch
            self.sums[2] += target_tokens
        self.sums = torch.where(finite, self.sums, before)
        if distributed.is_main():
            self.sums[3] += ~finite

    def add_held_out(self, losses: Losses, target_tokens: Tensor) -> None:
        """Add the losses of a batch that nothing is learned from, and this process's number of tokens."""
        self.sums[:2] += torch.stack(losses)
        self.sums[2] += target_tokens

    def total(self) -> Tensor:
        return distributed.sum_over_processes(self.sums.clone()).cpu()

    def means(self) -> Means:
        smoothed, likelihood, tokens, skipped = self.total().tolist()
        if not tokens:
            return Means(math.nan, math.nan, math.nan, int(skipped))
        nll = likelihood / tokens
        return Means(smoothed / tokens, nll, _perplexity(nll), int(skipped))


def _parts_at_once(config: TrainingConfig, machine: Machine) -> int:
    """Into how many parts, side by side, a process divides what it takes at once: on a CPU that it has to itself."""
    if machine.device.type != "cpu" or distributed.world_size() > 1:
        return 1
    return concurrent_workers(
        min(config.device_tokens or config.batch_tokens, config.batch_tokens) // MIN_MICRO_BATCH_TOKENS
    )


def _add(gradients: list[Tensor], parameters: list[nn.Parameter]) -> None:
    """Add gradients to those that the parameters have so far, in the order of the calls: it decides the last bits."""
    if parameters[0].grad is None:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
    else:
        torch._foreach_add_([parameter.grad for parameter in parameters if parameter.grad is not None], gradients)


def held_out_loss(
    model: Transformer,
    batches: Iterable[MicroBatch],
    config: TrainingConfig,
    machine: Machine,
    interruptible_together: Interruptible = nullcontext,
) -> Means:
    """Mean losses over batches; every process takes its share."""
    objective = Objective(model, config.label_smoothing).eval()
    window = _Window(machine.device)
    with interruptible_together(), torch.inference_mode(), machine.autocast():
        for batch in batches:
            window.add_held_out(objective(batch.to(machine.device)), (batch.labels != PAD).sum())
    return window.means()


def _perplexity(loss: float) -> float:
    return math.inf if loss >= 700 else math.exp(loss)
