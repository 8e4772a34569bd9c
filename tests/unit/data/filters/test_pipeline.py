"""Filters of the training text, against plain set and loop arithmetic."""

import random
from dataclasses import replace
from typing import Any

import pytest

from nmt.config.data import DataConfig
from nmt.data.engine import Engine
from nmt.data.filters.overlap import HeldOut
from nmt.data.filters.pipeline import (
    FILTERS,
    FirstSeen,
    apply,
    filter_settings,
    filters_of,
    has_at_most,
    pair_digests,
    read_chunks,
)
from nmt.data.sources.source import Pair
from nmt.errors import ConfigError


def run(
    pairs: list[Pair], data: DataConfig, size: int = 3, held_out: HeldOut | None = None, engine: Engine | None = None
) -> tuple[list[Pair], dict[str, int]]:
    """Return the pairs that the filters of training text keep, and how many each drops."""
    dropped: dict[str, int] = {}
    chunks = (chunk for chunk, _ in read_chunks(iter(pairs), size))
    kept = apply(filters_of(data, "train"), data, chunks, dropped, held_out, engine)
    return [pair for chunk in kept for pair in chunk], dropped


def test_filters_apply_in_order_and_count_what_they_drop() -> None:
    good = [("a b c", "d e f"), ("x", "y"), ("a b c", "d e g")]
    pairs: list[Pair] = [good[0], ("", "x"), ("x", "  "), ("a", "b\0"), good[1], good[0]]
    pairs += [("w " * 11, "v " * 11), ("a", "b c d e"), (" a b", "a b"), ("w " * 11, "w " * 11), good[2]]
    kept, dropped = run(pairs, DataConfig(drop_copies=True, max_words=10, max_ratio=3.0, deduplicate=True))
    assert kept == good
    counts = {"empty": 2, "control characters": 1, "copies": 2, "words": 1, "ratio": 1, "duplicates": 1}
    assert list(dropped.items()) == list(counts.items())


@pytest.mark.parametrize(
    ("pair", "settings", "is_kept"),
    [
        (("a b c", "d e f"), {"max_words": 3}, True),
        (("a b c d", "e"), {"max_words": 3}, False),
        (("a", "b c d e"), {"max_words": 3}, False),
        (("w " * 999, "v"), {"max_words": 0}, True),
        (("a b", "c d e"), {"max_ratio": 1.5}, True),
        (("c d e f", "a b"), {"max_ratio": 1.5}, False),
    ],
)
def test_limits_keep_what_is_within_them(pair: Pair, settings: dict[str, Any], is_kept: bool) -> None:
    assert run([pair], DataConfig(**{"max_words": 0, **settings}))[0] == ([pair] if is_kept else [])


@pytest.mark.parametrize(
    ("text", "fits"), [("a b c", True), ("a b c d", False), ("  a   b   c  ", True), ("a" * 99, True)]
)
def test_limit_of_words_counts_words_not_spaces(text: str, fits: bool) -> None:
    assert has_at_most(text, 3) is fits


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_deduplication_agrees_with_a_set(size: int) -> None:
    generator = random.Random(size)
    pairs = [(str(generator.randrange(900)), str(generator.randrange(2))) for _ in range(3000)]
    seen: set[Pair] = set()
    expected = [not (pair in seen or seen.add(pair)) for pair in pairs]  # type: ignore[func-returns-value]
    first = FirstSeen()
    chunks = [pairs[start : start + size] for start in range(0, len(pairs), size)]
    assert [new for chunk in chunks for new in first.are_new(pair_digests(chunk)).tolist()] == expected


def test_duplicates_are_compared_by_their_letters_and_sides() -> None:
    pairs: list[Pair] = [("Page 1 of 20.", "Seite 1 von 20."), ("Yes.", "वह की है"), ("Yes.", "वह का है")]
    pairs += [("a b", "c"), ("a", "b c"), ("c", "a b"), ("1", "2"), ("1", "3")]
    kept, dropped = run([*pairs, ("page 17  of 20", "SEITE 17 von 20!")], DataConfig(deduplicate=True))
    assert kept == pairs
    assert dropped["duplicates"] == 1


def test_processes_keep_and_count_the_same() -> None:
    pairs: list[Pair] = [(str(number % 40), "a " * (number % 7)) for number in range(200)]
    data, engine = DataConfig(deduplicate=True, max_words=5), Engine(workers=2)
    assert run(pairs, data, 50, engine=engine) == run(pairs, data)


def test_settings_of_filters_turn_them_on_and_are_recorded() -> None:
    turned_on: dict[str, Any] = {
        "drop_copies": True, "max_words": 9, "max_ratio": 2.0, "drop_overlap": "pair",
        "deduplicate": True, "min_language_probability": 0.1,
    }  # fmt: skip
    off = DataConfig(max_words=0, source="files")
    assert {each.setting for each in FILTERS} == {"", *turned_on}
    assert filter_settings(replace(off, **turned_on)) == turned_on
    for setting, value in turned_on.items():
        added = [each for each in filters_of(replace(off, **{setting: value}), "train") if each.setting]
        assert {each.setting for each in added} == {setting}


def test_filters_of_earlier_versions_have_the_same_records_if_new_ones_are_off() -> None:
    assert filter_settings(DataConfig()) == {
        "drop_copies": False, "max_words": 250, "max_ratio": 0.0, "deduplicate": False,
    }  # fmt: skip


def test_held_out_text_loses_only_pairs_that_cannot_be_scored() -> None:
    data = DataConfig(drop_copies=True)
    assert [each.name for each in filters_of(data, "test", ["test"])] == ["empty", "control characters"]
    assert filters_of(data, "test", ["valid"]) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_ratio": 0.5}, "data.max_ratio=0.5 would drop every pair"),
        ({"min_language_probability": 1.0}, r"data\.min_language_probability=1\.0 must be at least 0 and below 1"),
        ({"drop_overlap": "sides"}, r"data\.drop_overlap=sides is not one of pair, side; .*side"),
    ],
)
def test_impossible_limits_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DataConfig(**settings)
