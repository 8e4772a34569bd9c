"""The most probable continuations of the hypotheses of a beam search, by the operation in C."""

import ctypes
from collections.abc import Sequence
from ctypes import Structure, c_int64, c_void_p

import torch
from torch import Tensor

from nmt.model.kernels.c.library import buffers, computes_in_c, library

CHUNK = 64
"""Scores whose maximum the operation remembers."""


class _Continuations(Structure):
    _fields_ = (
        *((name, c_void_p) for name in ("scores", "open")),
        *((name, c_int64) for name in ("rows", "width", "rows_per_sentence")),
        ("never", c_void_p),
        *((name, c_int64) for name in ("never_count", "count")),
        *((name, c_void_p) for name in ("highest", "tokens", "maxima")),
        ("best", c_int64),
        *((name, c_void_p) for name in ("totals", "chosen", "parents")),
    )


def chooses_in_c(scores: Tensor) -> bool:
    """Return whether `choose_continuations` can be called for these scores (R, V)."""
    return scores.dtype == torch.float32 and computes_in_c(scores)


def choose_continuations(
    scores: Tensor, open_: Tensor, count: int, best: int, never: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the `best` most probable continuations of each sentence, at most `count` of each row, best first.

    Tokens in `never` count in the sum of the probabilities, but are not chosen. If too few tokens have finite scores,
    the last log-probabilities are -inf.

    Args:
        scores: (R, V) of the next tokens.
        open_: (S, K) log-probabilities of the hypotheses, R = S * K.
        count: tokens of each row that may be chosen.
        best: continuations of each sentence, at most K * `count`.
        never: tokens that are not chosen.

    Returns:
        The log-probabilities of the continuations, their tokens, and the rows that they continue, each (S, `best`).
    """
    scores, open_ = scores.contiguous(), open_.contiguous()
    (rows, width), (sentences, rows_per_sentence) = scores.shape, open_.shape
    numbers = torch.empty(rows * count + sentences * best)
    integers = torch.empty(rows * count + 2 * sentences * best, dtype=torch.int64)
    highest, totals = numbers.split([rows * count, sentences * best])
    tokens, chosen, parents = integers.split([rows * count, sentences * best, sentences * best])
    maxima = buffers(-(-width // CHUNK))
    forbidden = (c_int64 * len(never))(*never)
    asked = _Continuations(
        scores=scores.data_ptr(), open=open_.data_ptr(), rows=rows, width=width, rows_per_sentence=rows_per_sentence,
        never=ctypes.addressof(forbidden), never_count=len(never), count=count, highest=highest.data_ptr(),
        tokens=tokens.data_ptr(), maxima=maxima.data_ptr(), best=best, totals=totals.data_ptr(),
        chosen=chosen.data_ptr(), parents=parents.data_ptr(),
    )  # fmt: skip
    library(scores).choose_continuations(ctypes.byref(asked))
    return totals.view(sentences, best), chosen.view(sentences, best), parents.view(sentences, best)
