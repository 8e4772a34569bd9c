"""One operation of a device, as estimates count it."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

FLOAT32_BYTES = 4


class Part(StrEnum):
    """A part of a training step."""

    FORWARD = "forward"
    """The model, up to the last layer's output."""
    LOSS = "loss"
    """The loss, with its gradients with respect to the output and the projection."""
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    """The gradient's norm, the update of the weights, and all that belongs to no other part."""


class Operation(NamedTuple):
    """An operation of the device."""

    bytes: float
    """Bytes that it reads and writes."""
    flops: float = 0.0
    part: Part = Part.FORWARD


LAUNCH = Operation(0.0)
"""An operation on a few numbers, whose time is that of its launch."""


def passes(numbers: float, width: int, *counts: int) -> Iterator[Operation]:
    """Yield an operation for each count, which reads and writes that many tensors of `numbers` numbers together."""
    return (Operation(count * numbers * width) for count in counts)


def in_part(part: Part, operations: Iterable[Operation]) -> Iterator[Operation]:
    """Yield operations as those of another part of the step."""
    return (each._replace(part=part) for each in operations)


def backward(numbers: float, width: int, *counts: int) -> Iterator[Operation]:
    """Yield operations of the backward pass, see `passes`."""
    return in_part(Part.BACKWARD, passes(numbers, width, *counts))
