"""The settings of `table3`."""

from dataclasses import dataclass, field

from nmt.config.checks import check_at_least, check_between, check_choice
from nmt.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Table3Config:
    """The rows of the paper's Table 3 that `table3` trains."""

    rows: list[str] = field(default_factory=list)
    """Rows to train and score (base, a1, ..., big); empty is all."""
    scale: str = "full"
    """full (as in the paper), multi30k (every row in the same proportions, on Multi30k) or small (on the demo corpus,
    in minutes)."""
    base_steps: int = 0
    """Steps of the row base at a smaller scale, in proportion for big; 0 for those of the scale."""
    seeds: int = 1
    """Number of seeds with which each row is trained, from `seed` on."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("table3.scale", self.scale, ("full", "multi30k", "small"))
        check_at_least("table3.base_steps", self.base_steps, 0)
        check_between("table3.seeds", self.seeds, 1, 100)
        if self.base_steps and self.scale == "full":
            raise ConfigError("table3.base_steps needs a smaller table3.scale: the full rows have the paper's steps")
