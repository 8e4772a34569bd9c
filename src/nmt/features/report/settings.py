"""The settings of `report`, `compare` and `attention`."""

from dataclasses import dataclass, field

from nmt.config.checks import ADJUSTABLE, check_at_least, check_choice


@dataclass(frozen=True, kw_only=True)
class ComparedRuns:
    """The runs on a page."""

    compare: list[str] = field(default_factory=list, metadata=ADJUSTABLE)
    """Runs to compare, by name, or groups of runs with several seeds, by a pattern such as base-*; the first is the
    baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionConfig:
    """What `attention` draws."""

    part: str = "cross"
    """Attention of the encoder, the decoder, or cross (from the decoder to the encoder)."""
    layer: int = 0
    """Number of the layer, from 1; 0 draws all layers."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("attention.part", self.part, ("encoder", "decoder", "cross"))
        check_at_least("attention.layer", self.layer, 0)
