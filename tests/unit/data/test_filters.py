"""Filters of the training text, against plain set and loop arithmetic."""

import random
from dataclasses import replace
from typing import Any

import pytest

from nmt.config.schema import DataConfig
from nmt.data.filters import (
    PIECES,
    FilterChain,
    FirstSeen,
    chunks,
    filter_settings,
    has_at_most,
    setting_of,
    similar_lengths,
    training_filters,
)
from nmt.data.sources.source import Pair


def run(pairs: list[Pair], size: int = 3, **settings: object) -> tuple[list[Pair], dict[str, int]]:
    config = DataConfig(**settings)  # type: ignore[arg-type]
    chain = FilterChain(training_filters(config), config)
    return [pair for chunk in chunks(iter(pairs), size) for pair in chain.apply(chunk)], chain.dropped


def test_filters_apply_in_order_and_count_what_they_drop() -> None:
    good = [("a b c", "d e f"), ("x", "y"), ("a b c", "d e g")]
    pairs = [good[0], ("", "x"), ("x", "  "), ("a\nb", "c"), ("a", "b\0"), good[1], good[0]]
    pairs += [("w " * 11, "v " * 11), ("a", "b c d e"), (" a b", "a b"), ("w " * 11, "w " * 11), good[2]]
    kept, dropped = run(pairs, drop_copies=True, max_words=10, max_ratio=3.0, deduplicate=True)
    assert kept == good
    assert dropped == {"empty": 2, "control characters": 2, "copies": 2, "words": 1, "ratio": 1, "duplicates": 1}
    assert list(dropped) == ["empty", "control characters", "copies", "words", "ratio", "duplicates"]


def test_limits_of_zero_keep_all_pairs() -> None:
    pairs = [("w " * 999, "v"), ("w " * 999, "v")]
    kept, dropped = run(pairs, max_words=0)
    assert kept == pairs
    assert dropped == {"empty": 0, "control characters": 0}


@pytest.mark.parametrize(
    ("text", "fits"), [("a b c", True), ("a b c d", False), ("  a   b   c  ", True), ("a" * 99, True)]
)
def test_limit_of_words_counts_words_not_spaces(text: str, fits: bool) -> None:
    assert has_at_most(text, 3) is fits


def test_ratio_of_lengths_includes_the_limit() -> None:
    assert similar_lengths("a b", "c d e", 1.5)
    assert similar_lengths("c d e", "a b", 1.5)
    assert not similar_lengths("a b", "c d e f", 1.5)


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_deduplication_agrees_with_a_set(size: int) -> None:
    generator = random.Random(size)
    pairs = [(str(generator.randrange(900)), str(generator.randrange(2))) for _ in range(3000)]
    seen: set[Pair] = set()
    expected = [not (pair in seen or seen.add(pair)) for pair in pairs]  # type: ignore[func-returns-value]
    first = FirstSeen()
    assert [keep for chunk in chunks(iter(pairs), size) for keep in first.keeps(chunk)] == expected


def test_deduplication_does_not_mix_up_the_sides() -> None:
    assert FirstSeen().keeps([("a b", "c"), ("a", "b c"), ("c", "a b")]) == [True, True, True]


def test_settings_of_filters_exist_and_turn_them_on() -> None:
    defaults = DataConfig(max_words=0)
    always = [each.name for each in training_filters(defaults)]
    turned_on: dict[str, Any] = {"drop_copies": True, "max_words": 9, "max_ratio": 2.0, "deduplicate": True}
    assert filter_settings() == list(turned_on)
    for setting, value in turned_on.items():
        config = replace(defaults, **{setting: value})
        (added,) = [each.name for each in training_filters(config) if each.name not in always]
        assert setting_of(added) == setting
    assert hasattr(defaults, setting_of(PIECES[0]))
    assert setting_of("empty") == setting_of("unknown") == ""
