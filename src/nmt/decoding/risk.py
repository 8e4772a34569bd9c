"""Minimum Bayes risk: choose the translation that agrees best with all candidates (Eikema and Aziz, 2022).

chrF says how good each of several translations is if another one is the reference. It equals sacreBLEU's score of
sentences, but compares all pairs by matrix products of n-gram counts.

Shapes: N translations; a result (N, N) has a row per hypothesis and a column per reference.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nmt.decoding.beam import Hypothesis

Matrix = NDArray[np.float64]

CHRF_ORDER = 6
"""Characters of the longest n-grams that chrF compares."""
CHRF_BETA = 2
"""How many times more recall counts than precision in chrF."""


def rank_by_chrf(candidates: Sequence[Hypothesis], decode: Callable[[list[int]], str], nbest: int) -> list[Hypothesis]:
    """Return the different candidates of a sentence with the highest expected chrF, which becomes their score.

    The expectation is the mean over all candidates as references; one that was drawn twice counts twice.
    """
    if not candidates:
        return []
    counts = Counter(tuple(each.tokens) for each in candidates)
    distinct = {tuple(each.tokens): each for each in candidates}
    weights = np.array([counts[tokens] for tokens in distinct]) / len(candidates)
    expected = (chrf([decode(list(tokens)) for tokens in distinct]) @ weights).tolist()
    ranked = [replace(each, score=score) for each, score in zip(distinct.values(), expected, strict=True)]
    return sorted(ranked, key=lambda each: (-each.score, -each.log_probability))[:nbest]


def chrf(texts: Sequence[str]) -> Matrix:
    """Return sentence chrF with sacreBLEU's default settings."""
    characters = ["".join(text.split()).encode("utf-32-le") for text in texts]
    matches, counts = _matches([np.frombuffer(each, np.uint32).astype(np.int64) for each in characters], CHRF_ORDER)
    hypotheses, references = counts[:, :, None], counts[:, None, :]
    both = (hypotheses > 0) & (references > 0)
    orders = np.maximum(both.sum(0), 1)
    precision = _ratio(matches, hypotheses, both).sum(0) / orders
    recall = _ratio(matches, references, both).sum(0) / orders
    weighted = CHRF_BETA**2 * precision + recall
    return 100 * _ratio((1 + CHRF_BETA**2) * precision * recall, weighted, weighted > 0)


def _matches(texts: Sequence[NDArray[np.int64]], max_order: int) -> tuple[Matrix, Matrix]:
    """Return how many n-grams each pair of texts shares (order, N, N), and how many each text has (order, N)."""
    symbols = np.unique(np.concatenate(texts), return_inverse=True)[1].astype(np.int64)
    lengths = np.array([len(each) for each in texts])
    owners = np.repeat(np.arange(len(texts)), lengths)
    left = np.repeat(lengths.cumsum(), lengths) - np.arange(len(symbols))  # symbols from each place to the text's end
    grams = np.zeros_like(symbols)
    matches = np.zeros((max_order, len(texts), len(texts)))
    for order in range(1, max_order + 1):
        # An n-gram is numbered by the number of its first n - 1 symbols and by its last symbol.
        places = np.flatnonzero(left >= order)
        keys = grams[places] * (symbols.max(initial=0) + 1) + symbols[places + order - 1]
        grams = np.zeros_like(symbols)
        grams[places] = np.unique(keys, return_inverse=True)[1]
        matches[order - 1] = _shared(grams[places], owners[places], len(texts))
    counts = np.maximum(lengths - np.arange(max_order)[:, None], 0)
    return matches, counts.astype(np.float64)


def _shared(grams: NDArray[np.int64], owners: NDArray[np.int64], texts: int) -> Matrix:
    """Return how many n-grams each pair of texts shares (N, N), given the n-grams and the text of each.

    The k-th occurrence of an n-gram in a text is a feature, which other texts have if the n-gram stands in them at
    least k times. So the number of shared n-grams is the product of two rows of 0 and 1.
    """
    order = np.lexsort((owners, grams))
    grams, owners = grams[order], owners[order]
    first = np.ones(len(grams), bool)
    first[1:] = (grams[1:] != grams[:-1]) | (owners[1:] != owners[:-1])
    places = np.arange(len(grams))
    occurrence = places - np.maximum.accumulate(np.where(first, places, 0))
    keys = grams * (occurrence.max(initial=0) + 1) + occurrence
    features = np.unique(keys, return_inverse=True)[1]
    table = np.zeros((texts, features.max(initial=-1) + 1), np.float32)
    table[owners, features] = 1
    return (table @ table.T).astype(np.float64)


def _ratio(numerators: Matrix, denominators: Matrix, where: NDArray[np.bool_]) -> Matrix:
    """Return the ratios, or 0 where there is none."""
    zeros = np.zeros(np.broadcast_shapes(numerators.shape, denominators.shape))
    return np.divide(numerators, denominators, out=zeros, where=where)
