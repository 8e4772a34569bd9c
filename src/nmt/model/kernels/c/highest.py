"""The most probable next tokens by the operation in C."""

from collections.abc import Sequence
from ctypes import c_int64

import torch
from torch import Tensor

from nmt.model.kernels.c.library import buffers, computes_in_c, library

CHUNK = 64
"""Scores whose maximum the operation remembers."""


def finds_highest_in_c(scores: Tensor) -> bool:
    """Return whether `highest_log_probabilities` can be called for these scores (R, V)."""
    return scores.dtype == torch.float32 and computes_in_c(scores)


def highest_log_probabilities(scores: Tensor, count: int, never: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return the `count` highest log-probabilities (R, count) of each row of scores (R, V), and their tokens.

    The tokens in `never` count in the sum of the probabilities, but are not chosen. If too few tokens have finite
    scores, the last log-probabilities are -inf.
    """
    scores = scores.contiguous()
    highest = torch.empty(len(scores), count)
    tokens = torch.empty(len(scores), count, dtype=torch.int64)
    maxima = buffers(-(-scores.shape[1] // CHUNK))
    results = highest.data_ptr(), tokens.data_ptr(), maxima.data_ptr()
    library(scores).highest_log_probabilities(
        scores.data_ptr(), *scores.shape, count, (c_int64 * len(never))(*never), len(never), *results
    )
    return highest, tokens
