"""Minimum Bayes risk: choose the translation that agrees best with all candidates (Eikema and Aziz, 2022)."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nmt.decoding.beam import Hypothesis

Matrix = NDArray[np.float64]


def rank_by_utility(
    candidates: Sequence[Hypothesis],
    decode: Callable[[list[int]], str],
    compare: Callable[[list[str]], Matrix],
    nbest: int,
) -> list[Hypothesis]:
    """Return the different candidates of a sentence with the highest expected utility, which becomes their score.

    The expectation is the mean over all candidates as references; one that was drawn twice counts twice. `compare`
    returns the utility of each pair of texts.
    """
    counts = Counter(tuple(each.tokens) for each in candidates)
    distinct = {tuple(each.tokens): each for each in candidates}
    weights = np.array([counts[tokens] for tokens in distinct]) / len(candidates)
    expected = (compare([decode(list(tokens)) for tokens in distinct]) @ weights).tolist()
    ranked = [replace(each, score=score) for each, score in zip(distinct.values(), expected, strict=True)]
    return sorted(ranked, key=lambda each: (-each.score, -each.log_probability))[:nbest]
