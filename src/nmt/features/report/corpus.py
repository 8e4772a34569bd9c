"""Describe the training data of a run: filters, lengths, batches and word pieces."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.data.batches import PairLengths
from nmt.data.batching import Batching
from nmt.data.corpora import training_splits
from nmt.data.records import EncodedSide, Manifest
from nmt.data.store import Pairs
from nmt.features.report.charts import Spec, histogram
from nmt.features.report.run import Run
from nmt.text.lines import read_lines
from nmt.text.tokenizer import Tokenizer
from nmt.text.words import words_between_spaces

SAMPLE_LINES = 20_000
"""The number of lines of training text from which pieces per word are measured."""
LONGEST_PIECES = 12
"""The number of longest pieces to show."""
HISTOGRAM_BINS = 40
SHOWN_PERCENT = 99.5
"""The share of the sentences that a histogram of lengths shows; the longest sentences are left out."""


@dataclass(frozen=True, slots=True)
class PieceStatistics:
    """How the tokenizer splits the text of a language into word pieces."""

    language: str
    pieces_per_word: float
    """In scripts without spaces, each character counts as a word."""
    characters_per_piece: float
    unknown: int
    """Unknown pieces in the training text."""
    vocabulary: int
    longest: list[str]
    """The longest pieces of the vocabulary."""


@dataclass(frozen=True, slots=True)
class CorpusShare:
    """What a model was trained on from a corpus of several."""

    corpus: str
    pairs: int
    """Pairs trained on; those that occurred several times count as often."""
    tokens: int
    """Tokens of both sides trained on."""
    share: float
    """Its share of all tokens trained on."""
    passes: float
    """How often the corpus was trained on."""


def corpus_shares(run: Run, manifest: Manifest) -> list[CorpusShare]:
    """Return what the model was trained on from each corpus of several, by the last log line."""
    logged = next(iter(run.events_named("train")[::-1]), None)
    splits = training_splits(run.config.data)
    if logged is None or len(splits) == 1:
        return []
    pairs, tokens = (
        [int(logged.number(f"{unit}/{each.corpus}") or 0) for each in splits] for unit in ("pairs", "tokens")
    )
    sizes = [manifest.encoded(each.name).pairs for each in splits]
    return [
        CorpusShare(each.corpus, *counts, share=counts[1] / max(sum(tokens), 1), passes=counts[0] / size)
        for each, counts, size in zip(splits, zip(pairs, tokens, strict=True), sizes, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class SplitSize:
    """The size of an encoded split."""

    split: str
    pairs: int
    source: EncodedSide
    target: EncodedSide


def split_sizes(manifest: Manifest) -> list[SplitSize]:
    """Return the size of each split, training first."""
    names = sorted(manifest.splits("encode"), key=lambda name: (name != "train", name != "valid", name))
    encoded = [(name, manifest.encoded(name)) for name in names]
    return [SplitSize(name, each.pairs, each.source, each.target) for name, each in encoded]


def length_histogram(store: Pairs, languages: tuple[str, str]) -> Spec:
    """Draw the lengths of the sentences of both sides, in word pieces."""
    sides = dict(zip(languages, (store.source_lengths, store.target_lengths), strict=True))
    longest = max(float(np.percentile(lengths, SHOWN_PERCENT)) for lengths in sides.values())
    width = max(1, round(longest / HISTOGRAM_BINS))
    edges = np.arange(0, longest + width + 1, width, dtype=np.float64)
    return histogram(
        {side: np.histogram(lengths, edges)[0].astype(np.float64) for side, lengths in sides.items()},
        edges,
        "word pieces",
        "sentences",
    )


@dataclass(frozen=True, slots=True)
class BatchFill:
    """How full the batches of the first epoch are."""

    batches: int
    """The number of batches."""
    mean: dict[str, float]
    """Mean number of tokens per batch, as a share of the token budget, by language."""
    sentences: float
    """Mean number of sentence pairs per batch."""
    chart: Spec


def batch_fill(store: Pairs, run: Run) -> BatchFill:
    """Plan the batches of the first epoch as training does and measure how full they are."""
    lengths = PairLengths.with_marks(store.source_lengths, store.target_lengths)
    budget = run.config.training.batch_tokens
    plan = store.planner(lengths, Batching.of(run.config.training, run.config.seed))(0)
    sides = dict(zip(run.languages, (lengths.source, lengths.target), strict=True))
    before = {side: np.concatenate([[0], values[plan.order].cumsum()]) for side, values in sides.items()}
    shares = {side: 100 * np.diff(sums[plan.bounds])[:, 0] / budget for side, sums in before.items()}
    all_shares = np.concatenate(list(shares.values()))
    edges = np.linspace(math.floor(all_shares.min()), max(100.0, math.ceil(all_shares.max())), HISTOGRAM_BINS + 1)
    return BatchFill(
        len(plan),
        {side: float(share.mean()) / 100 for side, share in shares.items()},
        float(np.diff(plan.bounds).mean()),
        histogram(
            {side: _percent(np.histogram(share, edges)[0]) for side, share in shares.items()},
            edges,
            "percent of training.batch_tokens",
            "percent of the batches",
        ),
    )


def _percent(counts: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    return 100 * counts / max(int(counts.sum()), 1)


def piece_statistics(run: Run, tokenizer: Tokenizer, manifest: Manifest) -> list[PieceStatistics]:
    """Measure how the tokenizer splits the source and the target text of the training data."""
    encoders = (tokenizer.encode_source, tokenizer.encode_target)
    pieces_of = (tokenizer.source_pieces, tokenizer.target_pieces)
    sizes = (tokenizer.source_size, tokenizer.target_size)
    encoded = manifest.encoded("train")
    found = []
    for side, language in enumerate(run.languages):
        lines = list(_sample(run.data_folder / f"train.{language}"))
        pieces = sum(map(len, encoders[side](lines)))
        words = sum(len(words_between_spaces(line)) for line in lines)
        found.append(
            PieceStatistics(
                language,
                pieces / max(words, 1),
                sum(map(len, lines)) / max(pieces, 1),
                (encoded.source, encoded.target)[side].unknown,
                sizes[side],
                sorted(pieces_of[side](range(sizes[side])), key=len, reverse=True)[:LONGEST_PIECES],
            )
        )
    return found


def _sample(path: Path) -> Iterator[str]:
    return islice(read_lines(path), SAMPLE_LINES) if path.is_file() else iter(())
