"""Items taken together, so many at a time that they fit into memory, however large one of them is."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def blocks(items: Iterable[T], most: int, size: Callable[[T], int], room: int) -> Iterator[list[T]]:
    """Take at most `most` items at a time; fewer where their sizes fill `room`."""
    block: list[T] = []
    filled = 0
    for item in items:
        block.append(item)
        filled += size(item)
        if len(block) == most or filled >= room:
            yield block
            block, filled = [], 0
    if block:
        yield block
