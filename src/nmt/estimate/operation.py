"""One operation of a device, as estimates count it."""

from collections.abc import Iterator
from typing import NamedTuple

FLOAT32_BYTES = 4


class Operation(NamedTuple):
    """An operation of the device."""

    bytes: float
    """Bytes that it reads and writes."""
    flops: float = 0.0


LAUNCH = Operation(0.0)
"""An operation on a few numbers, whose time is that of its launch."""


def passes(numbers: float, width: int, *counts: int) -> Iterator[Operation]:
    """Yield an operation for each count, which reads and writes that many tensors of `numbers` numbers together."""
    return (Operation(count * numbers * width) for count in counts)
