"""Describe the training data of a run: filters, lengths, batches and word pieces."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.data.batches import PairLengths, plan_epoch
from nmt.data.records import Manifest
from nmt.data.store import PairStore
from nmt.report.charts import Spec, histogram
from nmt.report.run import Run
from nmt.text.lines import read_lines
from nmt.text.tokenizer import Tokenizer

SAMPLE = 20_000
"""Lines of training text from which pieces per word are measured."""
LONGEST = 12
"""Longest pieces to show."""
BINS = 40
TAIL = 99.5
"""Share of the sentences, in percent, that a histogram of lengths shows."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """How the tokenizer splits a language into word pieces."""

    language: str
    pieces_per_word: float
    characters_per_piece: float
    unknown: int
    tokens: int
    vocabulary: int
    longest: list[str]


def splits(manifest: Manifest) -> list[dict[str, Any]]:
    """Return pairs and tokens of each split, training first."""
    names = sorted(manifest.splits("encode"), key=lambda name: (name != "train", name != "valid", name))
    return [{"split": name, **asdict(manifest.encoded(name))} for name in names]


def length_histogram(store: PairStore, languages: tuple[str, str]) -> Spec:
    """Draw the lengths of the sentences of both sides, in word pieces."""
    sides = dict(zip(languages, (store.source_lengths, store.target_lengths), strict=True))
    longest = max(float(np.percentile(lengths, TAIL)) for lengths in sides.values())
    width = max(1, round(longest / BINS))
    edges = np.arange(0, longest + width + 1, width, dtype=np.float64)
    return histogram(
        {side: np.histogram(lengths, edges)[0].astype(np.float64) for side, lengths in sides.items()},
        edges,
        "word pieces",
        "sentences",
    )


@dataclass(frozen=True, slots=True)
class Fill:
    """How full the batches of the first epoch are."""

    batches: int
    mean: dict[str, float]
    """Mean tokens of a batch by language, as a share of the token budget."""
    sentences: float
    """Mean number of sentences in a batch."""
    chart: Spec


def batch_fill(store: PairStore, run: Run) -> Fill:
    """Plan the batches of the first epoch as training does, and measure how full they are."""
    lengths, budget = (
        PairLengths.with_marks(store.source_lengths, store.target_lengths),
        run.config.training.batch_tokens,
    )
    plan = plan_epoch(lengths, budget, run.config.seed, epoch=0)
    starts = np.sort(plan.bounds[:, 0])
    sides = dict(zip(run.languages, (lengths.source, lengths.target), strict=True))
    shares = {side: 100 * np.add.reduceat(values[plan.order], starts) / budget for side, values in sides.items()}
    every = np.concatenate(list(shares.values()))
    edges = np.linspace(math.floor(every.min()), max(100.0, math.ceil(every.max())), BINS + 1)
    return Fill(
        len(plan),
        {side: float(share.mean()) / 100 for side, share in shares.items()},
        len(store) / len(plan),
        histogram(
            {side: _share_of_all(np.histogram(share, edges)[0]) for side, share in shares.items()},
            edges,
            "percent of training.batch_tokens",
            "percent of the batches",
        ),
    )


def _share_of_all(counts: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    return 100 * counts / max(int(counts.sum()), 1)


def piece_statistics(run: Run, tokenizer: Tokenizer, manifest: Manifest) -> list[Pieces]:
    """Measure how the tokenizer splits the training text, for both sides."""
    encoders = (tokenizer.encode_source, tokenizer.encode_target)
    written = (tokenizer.source_pieces, tokenizer.target_pieces)
    sizes = (tokenizer.source_size, tokenizer.target_size)
    found = []
    for side, language in enumerate(run.languages):
        lines = list(_sample(run.data_folder / f"train.{language}"))
        pieces = sum(map(len, encoders[side](lines)))
        words = sum(len(line.split()) for line in lines)
        encoded = manifest.encoded("train")
        result = (encoded.source, encoded.target)[side]
        found.append(
            Pieces(
                language,
                pieces / max(words, 1),
                sum(map(len, lines)) / max(pieces, 1),
                result.unknown,
                result.tokens,
                sizes[side],
                sorted(written[side](range(sizes[side])), key=len, reverse=True)[:LONGEST],
            )
        )
    return found


def _sample(path: Path) -> Iterator[str]:
    return islice(read_lines(path), SAMPLE) if path.is_file() else iter(())
