"""Which sizes of micro-batches are recorded as CUDA graphs."""

from collections import Counter
from typing import NamedTuple

from nmt.model.packed import Packed

MAX_SHAPES = 512
"""The most sizes that are recorded: each takes memory, and some time to record."""
RECORDED_AT = 3
"""A size is recorded when it is met this often, so that rare ones take no room."""


class Shape(NamedTuple):
    """The sizes of a micro-batch on which a graph depends."""

    source_tokens: int
    target_tokens: int
    source_sentences: int
    target_sentences: int
    longest_source: int
    longest_target: int


def shape_of(source: Packed, target: Packed) -> Shape:
    """Return the sizes of a micro-batch; nothing is read from the device."""
    counts = len(source.tokens), len(target.tokens), len(source.offsets), len(target.offsets)
    return Shape(*counts, source.longest, target.longest)


class Recorded:
    """The sizes that are recorded: the first that have been met `RECORDED_AT` times."""

    def __init__(self, limit: int = MAX_SHAPES) -> None:
        """Record at most `limit` sizes."""
        self.limit = limit
        self.shapes: set[Shape] = set()
        self._met = Counter[Shape]()

    def meet(self, shape: Shape) -> bool:
        """Take note of a micro-batch of this size, and return whether the size is recorded, perhaps from now on."""
        if shape not in self.shapes and not self.is_full:
            self._met[shape] += 1
            if self._met[shape] >= RECORDED_AT:
                self.shapes.add(shape)
        return shape in self.shapes

    @property
    def is_full(self) -> bool:
        """Whether no further size will be recorded."""
        return len(self.shapes) >= self.limit
