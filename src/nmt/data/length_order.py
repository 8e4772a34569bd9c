"""Sort sentence pairs by length, and cut the sorted pairs into batches, in little memory: there may be a billion."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]

PART_PAIRS = 1 << 24
"""About how many pairs are sorted together, which needs about 30 bytes per pair."""


def sorted_by_length(order: IntArray, source: IntArray, target: IntArray) -> IntArray:
    """Return pairs by target length, then by source length; those of equal lengths stay in their order.

    Pairs of some target lengths are sorted at a time, to bound the memory.
    """
    if len(order) <= PART_PAIRS:
        return _sorted(order, source, target)
    blocks = [order[start : start + PART_PAIRS] for start in range(0, len(order), PART_PAIRS)]
    targets = [_compact(target[block]) for block in blocks]
    longest = max(int(each.max()) for each in targets)
    counts = sum(np.bincount(each, minlength=longest + 1) for each in targets)
    parts = (np.cumsum(counts) - counts) // PART_PAIRS
    firsts = np.flatnonzero(np.diff(parts, prepend=-1, append=parts[-1] + 1))
    found, end = np.empty_like(order), 0
    for low, high in pairwise(firsts.tolist()):
        chosen = [block[(low <= side) & (side < high)] for block, side in zip(blocks, targets, strict=True)]
        part = _sorted(np.concatenate(chosen), source, target)
        found[end : end + len(part)] = part
        end += len(part)
    return found


def _sorted(order: IntArray, source: IntArray, target: IntArray) -> IntArray:
    """Return pairs in the order of `sorted_by_length`."""
    return order[np.lexsort([_compact(side[order]) for side in (source, target)])]


def _compact(lengths: IntArray) -> IntArray:
    """Return lengths as 16-bit numbers if they are small enough: sorting these is several times faster."""
    return lengths.astype(np.uint16) if lengths.max(initial=0) < 1 << 16 else lengths


def batch_starts(order: IntArray, source: IntArray, target: IntArray, budget: int) -> IntArray:
    """Return the index at which each batch starts; batches are as large as both budgets allow, and never empty."""
    starts: list[IntArray] = [np.zeros(0, dtype=np.int64)]
    first, size = 0, PART_PAIRS
    while first < len(order):
        part = order[first : first + size]
        source_ends, target_ends = (side[part].cumsum(dtype=np.int64) for side in (source, target))
        found = np.array(_starts_in_part(source_ends, target_ends, budget))
        if first + len(part) == len(order):
            starts.append(first + found)
            break
        starts.append(first + found[:-1])  # the last batch may go on after this part
        first += int(found[-1])
        size = size if found[-1] else 2 * size
    return np.concatenate(starts)


def _starts_in_part(source_ends: IntArray, target_ends: IntArray, budget: int) -> list[int]:
    starts, start, source_before, target_before = [], 0, 0, 0
    while start < len(source_ends):
        starts.append(start)
        source_end = source_ends.searchsorted(source_before + budget, side="right")
        target_end = target_ends.searchsorted(target_before + budget, side="right")
        start = max(start + 1, int(min(source_end, target_end)))
        source_before, target_before = source_ends[start - 1], target_ends[start - 1]
    return starts
