"""What `eval` says about repaired trees: how many there were, and what was wrong with them."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nmt.config.data import TREES
from nmt.evaluation.finding import Finding, TranslatedSplit

if TYPE_CHECKING:
    from nmt.parsing.linearise import Repairs


class _Finding(Finding["Repairs"]):
    """The counts of what was repaired before trees were scored."""

    def find(self, translated: TranslatedSplit) -> "Repairs | None":
        """See `Finding.find`."""
        if translated.target_lang != TREES:
            return None
        from nmt.parsing.lines import repair_all  # noqa: PLC0415 - only trees need the library

        return repair_all(translated.split.untagged_sources, translated.hypotheses)[1]

    def to_json(self, found: "Repairs") -> object:
        """See `Finding.to_json`."""
        return asdict(found)

    def from_json(self, content: Any) -> "Repairs":
        """See `Finding.from_json`."""
        from nmt.parsing.linearise import Repairs  # noqa: PLC0415 - only trees need the library

        return Repairs(**content)

    def line(self, found: "Repairs") -> str:
        """See `Finding.line`."""
        return f"repaired: {found}"


REPAIRS = _Finding()
