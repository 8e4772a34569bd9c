"""Group a stream of items into blocks that fit into memory, however large single items are."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def blocks(items: Iterable[T], max_items: int, size: Callable[[T], int], max_size: int) -> Iterator[list[T]]:
    """Yield blocks of at most `max_items` items; a block also ends once its sizes add up to `max_size` or more."""
    block: list[T] = []
    block_size = 0
    for item in items:
        block.append(item)
        block_size += size(item)
        if len(block) == max_items or block_size >= max_size:
            yield block
            block, block_size = [], 0
    if block:
        yield block
