"""Filters that workers share give the same pairs and counts as one process."""

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any

import pytest

from nmt.config.compose import compose
from nmt.config.data import DataConfig
from nmt.data.engine import Engine, Workers
from nmt.data.filters.pipeline import Filter, FilterChain, chunks, training_filters
from nmt.data.filters.shared import SharedFilterChain, filter_chain
from nmt.data.sources.source import Pair


class ReadingAhead:
    """Applies a function in this process, but reads several items ahead."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self.is_closed = False

    def map(self, items: Iterable[Any]) -> Iterator[Any]:
        waiting = []
        for item in items:
            waiting.append(item)
            if len(waiting) > 3:
                yield self._function(waiting.pop(0))
        yield from map(self._function, waiting)

    def close(self) -> None:
        self.is_closed = True


class InThisProcess(Engine):
    """An engine without processes."""

    shares_quick_work = True

    def __init__(self) -> None:
        super().__init__(compose([]))
        self.started: list[ReadingAhead] = []

    def workers(self, purpose: str, make: Callable[..., Callable[[Any], Any]], *args: Any) -> Workers:
        self.started.append(ReadingAhead(make(*args)))
        return self.started[-1]

    def close(self) -> None:
        pass


SETTINGS: list[dict[str, Any]] = [
    {},
    {"deduplicate": True},
    {"drop_copies": True, "max_words": 4, "max_ratio": 2.0, "deduplicate": True},
    {"max_ratio": 1.5, "max_words": 0},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_shared_filters_keep_and_count_the_same(settings: dict[str, Any], size: int) -> None:
    generator = random.Random(4)
    texts = ["", "a", "b", "a b", "a b c d e", "  ", "x\0y", "bb"]
    pairs: list[Pair] = [(generator.choice(texts), generator.choice(texts)) for _ in range(300)]
    config = DataConfig(**settings)
    alone, engine = FilterChain(training_filters(config), config), InThisProcess()
    expected = [pair for chunk in chunks(iter(pairs), size) for pair in alone.apply(chunk)]
    with closing(filter_chain(training_filters(config), config, engine)) as shared:
        assert isinstance(shared, SharedFilterChain)
        assert [pair for chunk in shared.apply_all(chunks(iter(pairs), size)) for pair in chunk] == expected
    assert shared.dropped == alone.dropped
    assert all(each.is_closed for each in engine.started)


def test_filters_before_and_after_one_that_needs_the_order_have_workers_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = DataConfig(deduplicate=True, max_words=0)
    last = Filter("last", "", lambda _: lambda chunk: [pair[0] != "a" for pair in chunk])
    chosen = [*training_filters(config), last]
    monkeypatch.setattr("nmt.data.filters.shared.FILTERS", chosen)
    engine = InThisProcess()
    shared = SharedFilterChain(chosen, config, engine)
    assert list(shared.apply_all(iter([[("a", "x"), ("b", "x")], [("b", "x"), ("a", "x")]]))) == [[("b", "x")], []]
    assert shared.dropped == {"empty": 0, "control characters": 0, "duplicates": 2, "last": 1}
    assert len(engine.started) == 2


def test_text_without_filters_needs_no_workers() -> None:
    engine = InThisProcess()
    chain = filter_chain([], DataConfig(), engine)
    assert list(chain.apply_all(iter([[("a", "")]]))) == [[("a", "")]]
    assert engine.started == []
