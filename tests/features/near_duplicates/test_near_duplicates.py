"""MinHash against the similarity of sets, and the filter against memory, chunks and processes."""

import random
import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from nmt.config.schema import DataConfig
from nmt.data.filters import FilterChain, filter_settings, training_filters
from nmt.data.sources.source import Pair
from nmt.errors import ConfigError
from nmt.features.near_duplicates.filter import BandTable
from nmt.features.near_duplicates.min_hash import BANDS, MinHash, rows_per_band

WORDS = [
    f"{first}{second}{third}"
    for first in "bdfgklmnprst"
    for second in ("a", "e", "i", "o", "u", "an", "el", "ir")
    for third in "bdfgklmnprst"
]


def elements(pair: Sequence[str]) -> set[tuple[str, ...]]:
    """Return the words of a pair and its neighbouring words, as the definition has them."""
    found: set[tuple[str, ...]] = set()
    words: list[str] = []
    for number, side in enumerate(pair):
        plain = re.findall(r"\w+", re.sub(r"\d+", "0", side.casefold()))
        words += [f"{number}<", *(f"{number}{word}" for word in plain)]
    found |= {(word,) for word in words}
    return found | set(pairwise(words))


def similarity(first: Sequence[str], second: Sequence[str]) -> float:
    one, other = elements(first), elements(second)
    return len(one & other) / len(one | other)


def sentence(generator: random.Random, length: int) -> list[str]:
    return generator.choices(WORDS, k=length)


def test_bands_are_equal_as_often_as_the_similarity_says() -> None:
    generator = random.Random(1)
    min_hash = MinHash(0.7)
    rows = rows_per_band(0.7)
    expected, found = [], []
    for _ in range(1500):
        words = sentence(generator, 12)
        other = [generator.choice(WORDS) if generator.random() < 0.15 else word for word in words]
        pairs = [(" ".join(words), " ".join(words[::-1])), (" ".join(other), " ".join(other[::-1]))]
        one, two = min_hash.bands(pairs)
        expected.append(similarity(*pairs) ** rows)
        found.append(float((one == two).mean()))
    assert np.mean(found) == pytest.approx(np.mean(expected), abs=0.02)
    assert np.corrcoef(found, expected)[0, 1] > 0.6


@pytest.mark.parametrize("wanted", [0.4, 0.6, 0.7, 0.8, 0.9])
def test_half_of_the_pairs_of_the_wanted_similarity_share_a_band(wanted: float) -> None:
    assert 1 - (1 - wanted ** rows_per_band(wanted)) ** BANDS == pytest.approx(0.5, abs=0.17)


def keep(pairs: list[Pair], wanted: float = 0.7, size: int = 1000) -> list[Pair]:
    config = DataConfig(near_duplicates=wanted, max_words=0)  # type: ignore[call-arg]
    chain = FilterChain(training_filters(config), config)
    return [pair for start in range(0, len(pairs), size) for pair in chain.apply(pairs[start : start + size])]


def test_numbers_case_and_punctuation_do_not_make_a_difference() -> None:
    pairs: list[Pair] = [
        ("Page 1 of 20.", "Seite 1 von 20."),
        ("page 17 of 20", "Seite 17 von 20!"),
        ("Page one of two.", "Seite eins von zwei."),
        ("", ""),
        ("?!", "!"),
        ("The cat sleeps.", "Die Katze schläft."),
    ]
    assert keep(pairs) == [pairs[0], pairs[2], pairs[4], pairs[5]]


def test_vowel_signs_make_a_difference_and_characters_of_text_without_spaces_are_words() -> None:
    pairs: list[Pair] = [
        ("Yes.", "वह की है किताब"),
        ("Yes.", "वह का है कतिबि"),
        ("Yes.", "我非常喜欢我家里的那只狗,它也喜欢我。"),
        ("Yes.", "我非常喜欢我家里的那只猫,它也喜欢我。"),
        ("Yes.", "他昨天没有去学校,因为他病了。"),
    ]
    assert keep(pairs) == [pairs[0], pairs[1], pairs[2], pairs[4]]


def test_sides_are_told_apart() -> None:
    pairs: list[Pair] = [("a b c", "d e f"), ("d e f", "a b c")]
    assert keep(pairs) == pairs


def test_near_repeats_are_dropped_and_other_pairs_are_kept() -> None:
    generator = random.Random(2)
    fresh: list[Pair] = [(" ".join(sentence(generator, 14)), " ".join(sentence(generator, 14))) for _ in range(2000)]
    assert keep(fresh, 0.8) == fresh
    changed: list[Pair] = []
    for source, target in fresh:
        words = source.split()
        words[5] = "another"
        changed.append((" ".join(words), target))
    kept = keep([*fresh, *changed], 0.7)
    assert kept[:2000] == fresh
    assert len(kept) - 2000 < 100, "the similarity is 0.87"


def test_the_size_of_chunks_does_not_matter() -> None:
    generator = random.Random(3)
    pairs: list[Pair] = [(" ".join(sentence(generator, 3)), " ".join(sentence(generator, 2))) for _ in range(400)]
    assert keep(pairs, 0.4, 1) == keep(pairs, 0.4, 7) == keep(pairs, 0.4)


def test_a_small_table_forgets_old_pairs_but_not_recent_ones() -> None:
    table = BandTable(1 << 6)
    bands = np.random.default_rng(1).integers(1, 2**63, (1000, BANDS), np.uint64)
    assert all(table.keeps(bands))
    assert table.keeps(bands[-2:]) == [False, False]
    assert table.keeps(bands[:1]) == [True]


def test_the_bands_of_no_pair_are_an_empty_array() -> None:
    assert MinHash(0.7).bands([]).shape == (0, BANDS)
    assert BandTable(8).keeps(MinHash(0.7).bands([])) == []


@pytest.mark.parametrize("value", [0.1, 1.5, -1.0, float("nan")])
def test_an_impossible_similarity_is_refused(value: float) -> None:
    with pytest.raises(ConfigError, match=r"data\.near_duplicates=.* must be at least 0\.3 and at most 1, or 0"):
        DataConfig(near_duplicates=value)  # type: ignore[call-arg]


def test_the_setting_is_recorded_only_if_it_is_on() -> None:
    assert "near_duplicates" not in filter_settings(DataConfig())
    assert filter_settings(DataConfig(near_duplicates=0.7))["near_duplicates"] == 0.7  # type: ignore[call-arg]
