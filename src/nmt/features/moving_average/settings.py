"""The setting of the moving average of the weights."""

from dataclasses import dataclass

from nmt.config.checks import check_fraction


@dataclass(frozen=True, kw_only=True)
class AveragedTraining:
    """The decay of the moving average."""

    ema: float = 0.0
    """Decay per step of a moving average of the weights, such as 0.999, which validation, checkpoints and everything
    that reads them use instead of the weights; 0 for none. In step s it is at most (1 + s) / (10 + s)."""

    def __post_init__(self) -> None:
        """Check the value."""
        check_fraction("training.ema", self.ema)
