"""The settings of `report`."""

from dataclasses import dataclass, field

from nmt.config.checks import ADJUSTABLE


@dataclass(frozen=True, kw_only=True)
class ComparedRuns:
    """The runs on a page."""

    compare: list[str] = field(default_factory=list, metadata=ADJUSTABLE)
    """Runs to compare, by name; the first is the baseline."""
