"""The alignment error rate (Och and Ney, 2003) of word alignments, compared with the true ones."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nmt.compute import distributed
from nmt.data.references import alignments_of
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
        return f"error rate {self.error_rate:.1f}%, precision {self.precision:.1f}%, recall {self.recall:.1f}%"


def count_links(sentences: Iterable[tuple[Iterable[Link], GoldAlignment]]) -> list[int]:
    """Return how many links of some sentences are found, found and sure, found and possible, and sure."""
    counts = [
        (len(found), len(found & gold.sure), len(found & gold.possible), len(gold.sure))
        for found, gold in ((frozenset(links), gold) for links, gold in sentences)
    ]
    return [sum(column) for column in zip(*counts, strict=True)] or [0] * 4


def score_links(found: int, found_sure: int, found_possible: int, sure: int) -> AlignmentScore:
    """Return the scores that follow from the counts of links."""
    total = found + sure
    return AlignmentScore(
        error_rate=100 * (1 - (found_sure + found_possible) / total) if total else 0.0,
        precision=100 * found_possible / max(1, found),
        recall=100 * found_sure / max(1, sure),
    )


def alignment_score(engine: Engine, split: Split) -> AlignmentScore | None:
    """Return how well the model aligns the references; None if the true alignments are not known.

    Each process aligns its share of the sentences.
    """
    gold = alignments_of(split.folder, split.name)
    if not (gold and engine.shows_attention):
        return None
    share = slice(distributed.rank(), None, distributed.world_size())
    links = align(engine, split.sources[share], split.references[share])
    counts = count_links(zip(links, gold[share], strict=True))
    return score_links(*np.sum(distributed.gather_objects(counts), axis=0).tolist())
