"""Mean losses: of the steps since the last log line, and on held-out text."""

import math
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.compute import distributed
from nmt.compute.signals import Interruptible
from nmt.config.training import TrainingConfig
from nmt.data.loader import MicroBatch
from nmt.model.working_weights import WorkingWeights
from nmt.text.special import PAD
from nmt.training.loss import Losses
from nmt.training.objective import Objective


class Statistics(NamedTuple):
    """Mean losses per target token over the steps that changed the weights; NaN if there were none."""

    loss: float
    """Label-smoothed cross-entropy, which training minimises."""
    nll: float
    """Negative log-likelihood; the perplexity is its exponential."""
    perplexity: float
    skipped: int
    """Steps that changed nothing because their gradient was not finite."""


class LossSums:
    """Sums of losses, kept on the device so that no step waits for it."""

    def __init__(self, device: torch.device) -> None:
        exact = torch.float32 if device.type == "mps" else torch.float64  # Apple's GPU lacks float64
        # smoothed loss, negative log-likelihood, target tokens, skipped steps
        self.sums = torch.zeros(4, dtype=exact, device=device)

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
        return distributed.sum_over_processes(self.sums.clone()).cpu().double()

    def statistics(self) -> Statistics:
        """Return the means over all processes."""
        smoothed, nlls, tokens, skipped = self.total().tolist()
        if not tokens:
            return Statistics(math.nan, math.nan, math.nan, int(skipped))
        nll = nlls / tokens
        return Statistics(smoothed / tokens, nll, _perplexity(nll), int(skipped))


def held_out_loss(
    weights: WorkingWeights,
    batches: Iterable[MicroBatch],
    config: TrainingConfig,
    device: torch.device,
    interruptible_together: Interruptible = nullcontext,
) -> Statistics:
    """Return a model's mean losses over the batches of all processes; each process passes its share."""
    objective, sums = Objective(weights.model, config.label_smoothing).eval(), LossSums(device)
    with interruptible_together(), weights.active(), torch.inference_mode():
        for batch in batches:
            sums.add_held_out(objective(batch.to(device)), (batch.labels != PAD).sum())
    return sums.statistics()


def _perplexity(loss: float) -> float:
    return math.inf if loss >= 700 else math.exp(loss)
