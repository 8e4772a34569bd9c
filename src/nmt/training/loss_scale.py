"""Dynamic loss scaling for training in fp16 (Micikevicius et al., 2018).

Many gradients are too small for fp16, so the loss is multiplied by a large power of two, and the gradient of the
weights, which is float32, is divided by it. If a gradient becomes too large, the step changes nothing and the scale is
halved. After many good steps in a row it is doubled. Everything stays on the device, so no step waits for it.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

INITIAL_SCALE = 2.0**15
MIN_SCALE = 1.0
"""The least scale: a gradient that is not finite with this one did not overflow because of its scale."""
GROWTH_STEPS = 2000
"""Steps in a row with a finite gradient after which the scale is doubled."""


class LossScale:
    """The factor of the loss, and how many steps in a row had a finite gradient with it."""

    def __init__(self, device: torch.device) -> None:
        self.scale = torch.full((), INITIAL_SCALE, device=device)
        """The factor for the next step."""
        self._good_steps = torch.zeros((), dtype=torch.int32, device=device)

    def unscale(self, gradients: list[Tensor]) -> None:
        """Divide gradients by the scale, in place; this is exact, because the scale is a power of two."""
        torch._foreach_mul_(gradients, 1 / self.scale)

    def update(self, finite: Tensor) -> Tensor:
        """Adapt the scale after a step; return whether the step was fine or a lower scale may mend it.

        Whether its gradient was `finite` is known only to the device.
        """
        mendable = finite | (self.scale > MIN_SCALE)
        good_steps = (self._good_steps + 1) * finite
        grown = good_steps == GROWTH_STEPS
        halved = (self.scale / 2).clamp(min=MIN_SCALE)
        self.scale = torch.where(finite, self.scale * (1 + grown), halved)
        self._good_steps = good_steps * ~grown
        return mendable

    def to_save(self) -> dict[str, Tensor]:
        """Return the state for a checkpoint."""
        return {"scale": self.scale, "good_steps": self._good_steps}

    def restore(self, saved: Mapping[str, Tensor]) -> None:
        """Continue from what a checkpoint stores."""
        self.scale = saved["scale"].to(self.scale)
        self._good_steps = saved["good_steps"].to(self._good_steps)
