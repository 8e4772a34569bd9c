"""The alignment error rate (Och and Ney, 2003) of word alignments, compared with the true ones."""

from collections.abc import Iterable
from dataclasses import dataclass

from nmt.compute import distributed
from nmt.data.gold_alignments import alignments_of
from nmt.decoding.attention import align
from nmt.decoding.engine import Engine
from nmt.evaluation.split import Split
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
        rates = f"precision {self.precision:.1f}%, recall {self.recall:.1f}%"
        return f"error rate {self.error_rate:.1f}%, {rates}"


@dataclass(slots=True)
class LinkCounts:
    """Counts of links over sentences."""

    found: int = 0
    found_sure: int = 0
    found_possible: int = 0
    sure: int = 0

    def add(self, links: Iterable[Link], gold: GoldAlignment) -> None:
        """Count the links of a sentence."""
        found = frozenset(links)
        self.found += len(found)
        self.found_sure += len(found & gold.sure)
        self.found_possible += len(found & gold.possible)
        self.sure += len(gold.sure)

    def __add__(self, other: "LinkCounts") -> "LinkCounts":
        """Return the counts over the sentences of both."""
        return LinkCounts(
            self.found + other.found,
            self.found_sure + other.found_sure,
            self.found_possible + other.found_possible,
            self.sure + other.sure,
        )

    def score(self) -> AlignmentScore:
        """Return the scores."""
        agreed, total = self.found_sure + self.found_possible, self.found + self.sure
        return AlignmentScore(
            error_rate=100 * (1 - agreed / total) if total else 0.0,
            precision=100 * self.found_possible / max(1, self.found),
            recall=100 * self.found_sure / max(1, self.sure),
        )


def alignment_score(engine: Engine, split: Split) -> AlignmentScore | None:
    """Return how well the model aligns the references; None if the true alignments are not known.

    Each process aligns its share of the sentences.
    """
    gold = alignments_of(split.folder, split.name)
    if not (gold and engine.shows_attention):
        return None
    share = slice(distributed.rank(), None, distributed.world_size())
    counts = LinkCounts()
    for links, truth in zip(align(engine, split.sources[share], split.references[share]), gold[share], strict=True):
        counts.add(links, truth)
    return sum(distributed.gather_objects(counts), LinkCounts()).score()
