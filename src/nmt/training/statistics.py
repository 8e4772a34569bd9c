"""Mean losses, and steps without a finite gradient, counted on the device so that no step waits for it."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.compute import distributed
from nmt.errors import CommonError
from nmt.training.loss import Losses

MAX_BAD_STEPS = 10
"""After this many consecutive steps without a finite gradient, which change nothing, training stops."""


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
    """Sums of losses."""

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
        perplexity = math.inf if nll >= 700 else math.exp(nll)
        return Statistics(smoothed / tokens, nll, perplexity, int(skipped))


class BadSteps:
    """Counts the steps whose gradient was not finite, and that a lower loss scale cannot mend."""

    def __init__(self, device: torch.device) -> None:
        self._in_a_row = torch.zeros((), dtype=torch.int64, device=device)
        """Bad steps up to the last one, since the last finite gradient."""
        self._last = torch.zeros((), dtype=torch.int64, device=device)
        """The last bad step."""
        self._reported = 0

    def add(self, step: int, finite: Tensor, mendable: Tensor) -> None:
        """Count a step; one that is `mendable` is not bad."""
        self._in_a_row = torch.where(finite, 0, self._in_a_row + ~mendable)
        self._last = torch.where(mendable, self._last, step)

    def check(self) -> str:
        """Return a warning if there were bad steps since the last call; raise an error if too many were in a row."""
        in_a_row, last = torch.stack([self._in_a_row, self._last]).tolist()
        if in_a_row >= MAX_BAD_STEPS:
            raise CommonError(
                f"training diverged: {in_a_row} steps in a row, from step {last - in_a_row + 1} on, had no finite "
                "gradient. Earlier checkpoints, if any, are untouched: train under another name= with "
                "training.clip_norm=1 or a lower training.learning_rate"
            )
        if last == self._reported:
            return ""
        self._reported = last
        return f"step {last} had no finite gradient and changed nothing"
