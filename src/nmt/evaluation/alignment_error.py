"""The alignment error rate (Och and Ney, 2003) of word alignments, compared with the true ones."""

from collections.abc import Iterable
from dataclasses import dataclass

from nmt.text.alignments import GoldAlignment, Link


@dataclass(frozen=True, slots=True)
class AlignmentScore:
    """How well a model aligns the references, in percent."""

    error_rate: float
    precision: float
    """Share of the links found that are possible."""
    recall: float
    """Share of the sure links that are found."""

    def __str__(self) -> str:
        """Return the figures in words."""
        return f"error rate {self.error_rate:.1f}%, precision {self.precision:.1f}%, recall {self.recall:.1f}%"


def score_links(sentences: Iterable[tuple[Iterable[Link], GoldAlignment]]) -> AlignmentScore:
    """Score the links found in some sentences against the true ones."""
    found = found_sure = found_possible = sure = 0
    for links, gold in sentences:
        distinct = frozenset(links)
        found += len(distinct)
        found_sure += len(distinct & gold.sure)
        found_possible += len(distinct & gold.possible)
        sure += len(gold.sure)
    return AlignmentScore(
        error_rate=100 * (1 - (found_sure + found_possible) / (found + sure)) if found + sure else 0.0,
        precision=100 * found_possible / max(1, found),
        recall=100 * found_sure / max(1, sure),
    )
