"""The settings of restrictions."""

from dataclasses import dataclass, field

from nmt.config.checks import CONTROL, check_at_least


@dataclass(frozen=True, kw_only=True)
class RestrictedDecoding:
    """What translations must not contain."""

    no_repeat_ngram: int = field(default=0, metadata=CONTROL)
    """No sequence of this many word pieces stands twice in a translation; 0 allows repetitions."""
    min_length: int = field(default=0, metadata=CONTROL)
    """Least word pieces per translation."""
    suppress_unknown: bool = field(default=False, metadata=CONTROL)
    """Write no characters that the vocabulary lacks."""

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("no_repeat_ngram", "min_length"):
            check_at_least(f"decoding.{name}", getattr(self, name), 0)
