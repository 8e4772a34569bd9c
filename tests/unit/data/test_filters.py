"""Filters of the training text, against plain set and loop arithmetic."""

import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.config.compose import compose
from nmt.config.data import DataConfig
from nmt.data.corpora import CorpusSplit
from nmt.data.engine import LocalProcesses
from nmt.data.filters.parallel import PART_PAIRS, Keeps, ParallelFilter
from nmt.data.filters.pipeline import (
    PIECES,
    FilterChain,
    FirstSeen,
    chunks,
    filter_settings,
    has_at_most,
    hashes,
    join_lines,
    setting_of,
    similar_lengths,
    training_filters,
)
from nmt.data.overlap import HeldOutPair, Overlap, count_overlap
from nmt.data.sources.source import Pair
from nmt.errors import ConfigError


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


def test_a_pair_is_dropped_if_either_side_has_too_many_words() -> None:
    kept, dropped = run([("a b c", "d e f"), ("a b c d", "e"), ("a", "b c d e")], max_words=3)
    assert kept == [("a b c", "d e f")]
    assert dropped["words"] == 2


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
    assert [keep for chunk in chunks(iter(pairs), size) for keep in first.keeps(hashes(chunk))] == expected


def test_deduplication_does_not_mix_up_the_sides() -> None:
    assert FirstSeen().keeps(hashes([("a b", "c"), ("a", "b c"), ("c", "a b")])) == [True, True, True]


def test_duplicates_overlap_and_its_warning_compare_letters_only(tmp_path: Path) -> None:
    first, repeated = ("Page 1 of 20.", "Seite 1 von 20."), ("page 17  of 20", "SEITE 17 von 20!")
    others = [("Page one of two.", "Seite eins."), ("Yes.", "वह की है"), ("Yes.", "वह का है"), ("1", "2"), ("1", "3")]
    kept, dropped = run([first, repeated, *others], deduplicate=True)
    assert kept == [first, *others]
    assert dropped["duplicates"] == 1

    config = DataConfig(drop_overlap="pair")
    overlap = [
        each.knowing(config, lambda: [HeldOutPair(("en", "de"), *repeated)]) for each in training_filters(config)
    ]
    assert FilterChain(overlap, config).apply([first, *others]) == others

    for split, found in (("train", [first, *others]), ("test", [repeated])):
        for language, side in zip(("en", "de"), zip(*found, strict=True), strict=True):
            (tmp_path / f"{split}.{language}").write_text("".join(f"{line}\n" for line in side))
    counted = count_overlap(tmp_path, [CorpusSplit("main", name, DataConfig()) for name in ("train", "test")], print)
    assert counted == {"test": Overlap(sentences=1, source=1, target=1, pair=1)}


def test_settings_of_filters_exist_and_turn_them_on() -> None:
    defaults = DataConfig(max_words=0)
    always = [each.name for each in training_filters(defaults)]
    turned_on: dict[str, Any] = {
        "drop_copies": True, "max_words": 9, "max_ratio": 2.0,
        "score_column": "score", "deduplicate": True,
    }  # fmt: skip
    assert filter_settings(replace(defaults, **turned_on)) == turned_on
    for setting, value in turned_on.items():
        config = replace(defaults, **{setting: value})
        (added,) = [each.name for each in training_filters(config) if each.name not in always]
        assert setting_of(added) == setting
    assert hasattr(defaults, setting_of(PIECES[0]))
    assert setting_of("empty") == setting_of("unknown") == ""


def test_filters_of_earlier_versions_have_the_same_records_if_new_ones_are_off() -> None:
    assert filter_settings(DataConfig()) == {
        "drop_copies": False, "max_words": 250, "max_ratio": 0.0, "deduplicate": False,
    }  # fmt: skip


def test_pairs_below_the_lowest_score_or_without_one_are_dropped() -> None:
    scores = [0.4, 0.5, float("nan"), 7.0, -1.0]
    pairs: list[Pair] = [(str(number), "x", score) for number, score in enumerate(scores)]
    pairs[3] = ("two\nlines", "x", 7.0)
    config = DataConfig(source="files", score_column="s", min_score=0.5)
    joined, _ = join_lines(pairs)
    chain = FilterChain(training_filters(config), config)
    assert chain.apply(joined) == [("1", "x", 0.5), ("two lines", "x", 7.0)]
    assert chain.dropped["score"] == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_ratio": 0.5}, "data.max_ratio=0.5 would drop every pair"),
        ({"min_score": 1.0}, "needs data.score_column"),
        ({"min_score": float("nan"), "score_column": "s"}, "must be a finite number"),
        ({"score_column": "s", "source": "demo"}, "data.score_column=s needs tables, not data.source=demo"),
    ],
)
def test_impossible_limits_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DataConfig(**settings)


def odd_numbers(_: DataConfig) -> Keeps:
    return lambda chunk: [int(source) % 2 == 1 for source, _ in chunk]


def test_processes_judge_like_one_process() -> None:
    pairs: Sequence[Pair] = [(str(number), "") for number in range(2 * PART_PAIRS + 500)]
    config = DataConfig()
    with closing(ParallelFilter(odd_numbers, config, LocalProcesses(compose(["runtime.workers=2"])))) as several:
        for chunk in (pairs, pairs[:10], pairs[1:]):
            assert several.keeps(chunk) == odd_numbers(config)(chunk)


def test_processes_find_the_same_duplicates() -> None:
    pairs = [(str(number % 4000), "a") for number in range(2 * PART_PAIRS + 500)]
    config = DataConfig(deduplicate=True)
    filters, engine = training_filters(config), LocalProcesses(compose(["runtime.workers=2"]))
    with closing(FilterChain(filters, config, engine)) as several:
        assert several.apply(pairs) == FilterChain(filters, config).apply(pairs) == pairs[:4000]
