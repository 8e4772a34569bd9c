"""Filter text on workers, chunk by chunk, in the same order and with the same counts as one process does."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.config.data import DataConfig
from nmt.data.engine import Engine, Workers
from nmt.data.filters.pipeline import FILTERS, Digest, Filter, FilterChain
from nmt.data.sources.source import Pair


class Verdict(NamedTuple):
    """What a worker finds out about a chunk, without the text, which the main process has."""

    kept: npt.NDArray[np.bool_]
    dropped: list[int]
    """Pairs that each filter drops."""
    digest: npt.NDArray[np.uint64] | None
    """What the next filter compares of the pairs that are left, if that filter needs the pairs in order."""


class SharedFilterChain:
    """The filters of one split, as in `FilterChain`, applied by workers unless the order of the pairs matters."""

    def __init__(self, filters: Sequence[Filter], config: DataConfig, engine: Engine) -> None:
        """Start the workers; check the settings of all filters before."""
        for each in filters:
            each.make(config, *each.known)
        self.dropped = dict.fromkeys((each.name for each in filters), 0)
        """Pairs that each filter has dropped."""
        self._stages = [_Stage(part, config, engine, self.dropped) for part in _parts(filters)]

    def apply_all(self, chunks: Iterable[list[Pair]]) -> Iterator[list[Pair]]:
        """Yield the pairs of each chunk that pass all filters."""
        found = iter(chunks)
        for stage in self._stages:
            found = stage.apply(found)
        return found

    def close(self) -> None:
        """Stop the workers."""
        for stage in self._stages:
            stage.workers.close()


class _Stage:
    """Filters whose order among the pairs does not matter, and at most one after them whose does."""

    def __init__(self, filters: list[Filter], config: DataConfig, engine: Engine, dropped: dict[str, int]) -> None:
        self._dropped = dropped
        self._last = filters[-1] if filters[-1].digest else None
        self._keeps: Callable[[Any], Sequence[bool]] | None = (
            self._last.make(config, *self._last.known) if self._last else None
        )
        known = {each.name: each.known for each in filters if not each.digest}
        self._names = list(known)
        self.workers: Workers = engine.workers("filters text", judging, known, self._last_name, config)

    @property
    def _last_name(self) -> str:
        return self._last.name if self._last else ""

    def apply(self, chunks: Iterator[list[Pair]]) -> Iterator[list[Pair]]:
        waiting: deque[list[Pair]] = deque()

        def sent() -> Iterator[list[Pair]]:
            for chunk in chunks:
                waiting.append(chunk)
                yield chunk

        for verdict in self.workers.map(sent()):
            left = list(compress(waiting.popleft(), verdict.kept.tolist()))
            for name, count in zip(self._names, verdict.dropped, strict=True):
                self._dropped[name] += count
            if self._keeps:
                kept = list(compress(left, self._keeps(verdict.digest)))
                self._dropped[self._last_name] += len(left) - len(kept)
                left = kept
            yield left


def _parts(filters: Sequence[Filter]) -> list[list[Filter]]:
    """Divide filters, so that only the last of each part may need the pairs in order."""
    parts: list[list[Filter]] = []
    for each in filters:
        if not parts or parts[-1][-1].digest:
            parts.append([])
        parts[-1].append(each)
    return parts


def judging(known: Mapping[str, tuple[Any, ...]], last: str, config: DataConfig) -> Callable[[list[Pair]], Verdict]:
    """Return the function that judges chunks by some filters, and digests what is left for a last one.

    Args:
        known: The names of the filters, with what each of them knows of the development and test text.
        last: The name of the last filter, which needs the order of the pairs; empty if there is none.
        config: The settings.
    """
    by_name = {each.name: each for each in FILTERS}
    all_keep = [by_name[name].make(config, *text) for name, text in known.items()]
    make_digest = by_name[last].digest if last else None
    digest: Digest | None = make_digest(config) if make_digest else None

    def judge(chunk: list[Pair]) -> Verdict:
        left, dropped = np.arange(len(chunk)), []
        for keeps in all_keep:
            passed = np.fromiter(keeps([chunk[index] for index in left.tolist()]), bool, len(left))
            dropped.append(int(len(left) - passed.sum()))
            left = left[passed]
        kept = np.zeros(len(chunk), dtype=bool)
        kept[left] = True
        return Verdict(kept, dropped, digest([chunk[index] for index in left.tolist()]) if digest else None)

    return judge


def filter_chain(filters: Sequence[Filter], config: DataConfig, engine: Engine) -> FilterChain | SharedFilterChain:
    """Return the filters of a split, applied where the engine does it best."""
    if filters and engine.shares_quick_work:
        return SharedFilterChain(filters, config, engine)
    return FilterChain(filters, config, engine)
