"""The experiment with filters makes the noise that it names, and counts what is dropped."""

from collections import Counter

import pytest

from filter_noise import __main__ as filter_noise
from filter_noise.noise import CLEAN, KINDS, with_noise

CLEAN_PAIRS = [(f"source number {number} of them", f"ziel nummer {number} von ihnen") for number in range(700)]
TEST_PAIRS = [(f"test sentence {number}", f"testsatz {number}") for number in range(20)]


def test_the_share_of_noise_is_that_of_each_kind_and_repeats_follow_what_they_repeat() -> None:
    pairs = list(with_noise(CLEAN_PAIRS, TEST_PAIRS, 0.3, 1))
    counts = Counter(pair[2] for pair in pairs)
    assert counts.pop(CLEAN) == 700
    assert set(counts) == {kind.name for kind in KINDS}
    assert sum(counts.values()) == 300
    assert max(counts.values()) - min(counts.values()) <= 1
    first = {pair[:2]: number for number, pair in reversed(list(enumerate(pairs))) if pair[2] == CLEAN}
    repeated = [(number, pair) for number, pair in enumerate(pairs) if pair[2] == "repeated"]
    assert all(first[pair[:2]] < number for number, pair in repeated)
    of_test_set = [pair for pair in pairs if pair[2] == "test set"]
    assert all("test" in f"{pair[0]} {pair[1]}".lower() for pair in of_test_set)
    assert sum(pair[0].isupper() for pair in of_test_set) > 3


def test_the_same_seed_makes_the_same_noise() -> None:
    assert list(with_noise(CLEAN_PAIRS, TEST_PAIRS, 0.3, 1)) == list(with_noise(CLEAN_PAIRS, TEST_PAIRS, 0.3, 1))
    assert list(with_noise(CLEAN_PAIRS, TEST_PAIRS, 0.3, 1)) != list(with_noise(CLEAN_PAIRS, TEST_PAIRS, 0.3, 2))


@pytest.mark.slow
def test_the_table_shows_what_filters_must_catch(capsys: pytest.CaptureFixture[str]) -> None:
    assert filter_noise.main(["--pairs", "1000"]) == 0
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    cells = {row[0]: dict(zip(rows[0], row, strict=True)) for row in rows[2:]}
    assert cells["`data.drop_copies=true`"]["untranslated"] == "100.0%"
    assert cells["`data.deduplicate=true`"]["repeated"] == "100.0%"
    assert cells["`data.deduplicate=true`"][CLEAN] == "0.0%"
    assert cells["`data.drop_boilerplate=true`"][CLEAN] == "0.0%"
    assert cells["`data.drop_overlap=side`"][CLEAN] == "0.0%"
    in_other_letters, too_long = (
        cells[f"`data.{word}`"]["test set"] for word in ("drop_overlap=side", "overlap_share=0.5")
    )
    assert 20 < float(in_other_letters.rstrip("%")) < float(too_long.rstrip("%"))
