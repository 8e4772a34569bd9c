"""The word alignments of a micro-batch, to train an attention head on."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.data.alignments import NAME
from nmt.data.batches import IntArray
from nmt.data.store import Pairs


@dataclass(frozen=True, slots=True)
class Links:
    """Links from target tokens to source tokens; N is their number."""

    targets: Tensor
    """(N,) row of the target stream that predicts the linked piece; the next row reads it."""
    sources: Tensor
    """(N,) position of the linked piece in its source sentence."""
    weights: Tensor
    """(N,) weight in the loss. Divided by the labels of the global batch, those of a target token sum to 1 / the number
    of linked target tokens of the global batch."""

    def to(self, device: torch.device) -> "Links":
        """Return these links on another device."""
        return Links(*(each.to(device, non_blocking=device.type == "cuda") for each in self._tensors))

    def pinned(self) -> "Links":
        """Return these links in page-locked memory."""
        return Links(*(each.pin_memory() for each in self._tensors))

    @property
    def _tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.targets, self.sources, self.weights


PackSentences = Callable[[IntArray, IntArray], Links]
"""Packs the links of some pairs, given the pairs and the lengths of their target sentences with their marks."""


class _Found(NamedTuple):
    """The links of some pairs: the pair of each, counted from 0, its target piece and its source piece."""

    pairs: IntArray
    targets: npt.NDArray[np.int64]
    sources: npt.NDArray[np.int64]


def pack(text: Pairs, pairs: IntArray, labels: int) -> PackSentences:
    """Return what packs the links of the micro-batches of a global batch, given its pairs and number of labels."""
    found = _read(text, pairs)
    linked = len(np.unique(found.pairs << 32 | found.targets))
    return partial(_links_of, text, labels / linked if linked else 0.0)


def _links_of(text: Pairs, weight: float, pairs: IntArray, target_lengths: IntArray) -> Links:
    """Return the links of a micro-batch, given the weight that the links of a target token share."""
    found = _read(text, pairs)
    starts = target_lengths.cumsum() - target_lengths
    targets = starts[found.pairs] + found.targets  # row 0, the start mark, predicts piece 0
    _, token, counts = np.unique(targets, return_inverse=True, return_counts=True)
    weights = torch.from_numpy((weight / counts)[token])
    return Links(torch.from_numpy(targets), torch.from_numpy(found.sources), weights.to(torch.float32))


def _read(text: Pairs, pairs: IntArray) -> _Found:
    numbers, counts = text.gather(NAME, pairs, sys.maxsize)
    links = numbers.astype(np.int64).reshape(-1, 2)
    return _Found(np.repeat(np.arange(len(pairs)), counts // 2), links[:, 0], links[:, 1])
