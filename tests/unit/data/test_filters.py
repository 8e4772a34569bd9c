"""Filters of the training text, against plain set and loop arithmetic."""

import random

import pytest

from nmt.config.schema import DataConfig
from nmt.data.filters import FirstSeen, alike, apply, chunks, training_filters, within
from nmt.data.sources.source import Pair


def run(pairs: list[Pair], size: int = 3, **settings: object) -> tuple[list[Pair], dict[str, int]]:
    filters = training_filters(DataConfig(**settings))  # type: ignore[arg-type]
    dropped: dict[str, int] = {}
    return [pair for chunk in chunks(iter(pairs), size) for pair in apply(filters, chunk, dropped)], dropped


def test_each_filter_takes_out_and_counts_its_own() -> None:
    good = [("a b c", "d e f"), ("x", "y"), ("a b c", "d e g")]
    pairs = [good[0], ("", "x"), ("x", "  "), ("a\nb", "c"), ("a", "b\0"), good[1], good[0]]
    pairs += [("w " * 11, "v " * 11), ("a", "b c d e"), (" a b", "a b"), ("w " * 11, "w " * 11), good[2]]
    kept, dropped = run(pairs, drop_copies=True, max_words=10, max_ratio=3.0, deduplicate=True)
    assert kept == good
    assert dropped == {"empty": 2, "control characters": 2, "copies": 2, "words": 1, "ratio": 1, "duplicates": 1}
    assert list(dropped) == ["empty", "control characters", "copies", "words", "ratio", "duplicates"]


def test_limits_of_zero_keep_all() -> None:
    pairs = [("w " * 999, "v"), ("w " * 999, "v")]
    kept, dropped = run(pairs, max_words=0)
    assert kept == pairs
    assert dropped == {"empty": 0, "control characters": 0}


@pytest.mark.parametrize(
    ("text", "fits"), [("a b c", True), ("a b c d", False), ("  a   b   c  ", True), ("a" * 99, True)]
)
def test_within_counts_words(text: str, fits: bool) -> None:
    assert within(text, 3) is fits


def test_alike_at_its_border() -> None:
    assert alike("a b", "c d e", 1.5)
    assert alike("c d e", "a b", 1.5)
    assert not alike("a b", "c d e f", 1.5)


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_first_seen_agrees_with_a_set(size: int) -> None:
    generator = random.Random(size)
    pairs = [(str(generator.randrange(900)), str(generator.randrange(2))) for _ in range(3000)]
    seen: set[Pair] = set()
    expected = [not (pair in seen or seen.add(pair)) for pair in pairs]  # type: ignore[func-returns-value]
    first = FirstSeen()
    assert [keep for chunk in chunks(iter(pairs), size) for keep in first.keeps(chunk)] == expected


def test_first_seen_knows_the_sides_apart() -> None:
    assert FirstSeen().keeps([("a b", "c"), ("a", "b c"), ("c", "a b")]) == [True, True, True]
