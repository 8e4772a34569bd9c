"""The alignment error rate (Och and Ney, 2003) of word alignments, compared with the true ones."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nmt.compute import distributed
from nmt.config.schema import DecodingConfig
from nmt.decoding.engine import Engine
from nmt.decoding.piece_attention import PieceAttention, attend
from nmt.evaluation.finding import Finding, Table, TranslatedSplit
from nmt.evaluation.split import Split
from nmt.features.alignments.linking import AlignmentSource, links_by_source
from nmt.features.alignments.truth import alignments_of
from nmt.text.alignments import GoldAlignment, Link

NOTABLE_HEADS = 4
"""The number of single heads that a report names."""


@dataclass(frozen=True, slots=True)
class AlignmentScore:
    """How well attention aligns the references, in percent."""

    layer: int
    """Decoder layer, from 1; 0 is the mean of the last two."""
    head: int
    """From 1; 0 is the mean of all."""
    state: str
    """The decoder step whose attention counts: input, which reads a word, or output, which predicts it."""
    error_rate: float
    precision: float
    """Share of the links found that are possible."""
    recall: float
    """Share of the sure links that are found."""

    @property
    def text(self) -> str:
        """The error rate, and whose it is."""
        return f"{self.error_rate:.1f}% ({self.source}, {self.state})"

    @property
    def cells(self) -> list[str]:
        """The row of a report's table."""
        return [self.source, self.state, *(f"{each:.1f} %" for each in (self.error_rate, self.precision, self.recall))]

    @property
    def source(self) -> str:
        """The layer and head in words."""
        layer = f"layer {self.layer}" if self.layer else "the last two layers"
        return f"{layer}, head {self.head}" if self.head else f"mean of {layer}"


class AlignmentErrors(tuple[AlignmentScore, ...]):
    """The scores of each layer and head; the best comes first."""

    __slots__ = ()


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

    def score(self, source: AlignmentSource) -> AlignmentScore:
        """Return the scores."""
        agreed, total = self.found_sure + self.found_possible, self.found + self.sure
        return AlignmentScore(
            *source,
            error_rate=100 * (1 - agreed / total) if total else 0.0,
            precision=100 * self.found_possible / max(1, self.found),
            recall=100 * self.found_sure / max(1, self.sure),
        )


def chosen_score(scores: Sequence[AlignmentScore], config: DecodingConfig) -> AlignmentScore:
    """Return the score of the layer and head that the settings choose."""
    layers, heads = (max(getattr(score, name) for score in scores) for name in ("layer", "head"))
    chosen = AlignmentSource.chosen(config, layers, heads)
    return next(score for score in scores if (score.layer, score.head, score.state) == chosen)


def notable(scores: Sequence[AlignmentScore]) -> list[AlignmentScore]:
    """Return the scores of the means of all heads, and the best of the single heads; the best come first."""
    heads = [score for score in scores if score.head]
    return [score for score in scores if not score.head or score in heads[:NOTABLE_HEADS]]


def score_alignments(
    engine: Engine, sources: Sequence[str], references: Sequence[str], gold: Sequence[GoldAlignment]
) -> list[AlignmentScore]:
    """Align sentences with their references by each layer and head; the best comes first.

    Each process aligns its share and returns the scores of all.
    """
    share = slice(distributed.rank(), None, distributed.world_size())
    truth, counts = gold[share], defaultdict[AlignmentSource, LinkCounts](LinkCounts)

    def count(index: int, pair: PieceAttention) -> None:
        for source, links in links_by_source(pair):
            counts[source].add(links, truth[index])

    attend(engine, sources[share], references[share], count)
    shares = distributed.gather_objects(counts)
    totals = {source: sum((each[source] for each in shares), LinkCounts()) for source in shares[0]}
    return sorted((each.score(source) for source, each in totals.items()), key=lambda score: score.error_rate)


class _Finding(Finding[AlignmentErrors]):
    """How well each layer and head aligns the references, if the true alignments are known."""

    def prepare(self, split: Split) -> None:
        """See `Finding.prepare`."""
        alignments_of(split.folder, split.name)

    def find(self, translated: TranslatedSplit) -> AlignmentErrors | None:
        """See `Finding.find`."""
        engine, split = translated.engine, translated.split
        gold = alignments_of(split.folder, split.name)
        if not (gold and engine.attention_shape):
            return None
        return AlignmentErrors(score_alignments(engine, split.sources, split.references, gold))

    def to_json(self, found: AlignmentErrors) -> object:
        """See `Finding.to_json`."""
        return [asdict(score) for score in found]

    def from_json(self, content: Any) -> AlignmentErrors:
        """See `Finding.from_json`."""
        return AlignmentErrors(AlignmentScore(**each) for each in content)

    def line(self, found: AlignmentErrors, search: DecodingConfig) -> str:
        """See `Finding.line`."""
        return f"alignment error rate {chosen_score(found, search).text}; at best {found[0].text}"

    def table(self, found: AlignmentErrors) -> Table:
        """See `Finding.table`."""
        titles = "Word alignments of the references, by cross-attention", "Step", "Error rate", "Precision", "Recall"
        return Table(titles, [each.cells for each in notable(found)], texts=2)


ALIGNMENT_ERRORS = _Finding()
