"""Estimates of time, from samples of the text."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.synthesis.estimate import estimate, sample_for
from nmt.synthesis.shards import SAMPLE_LINES, InputText, scan_input


def scanned(tmp_path: Path, lines: Sequence[str]) -> InputText:
    path = tmp_path / "text"
    path.write_text("".join(f"{line}\n" for line in lines))
    return scan_input(str(path))


@pytest.mark.parametrize("count", [1, 999, 2000, 2001, 12_345])
def test_a_sample_has_lines_at_equal_distances(tmp_path: Path, count: int) -> None:
    text = scanned(tmp_path, [f"{number:06}" for number in range(count)])
    assert (text.lines, text.characters) == (count, 6 * count)
    numbers = list(map(int, text.sample))
    assert min(count, SAMPLE_LINES) <= len(numbers) < 2 * SAMPLE_LINES
    distance = numbers[1] - numbers[0] if count > 1 else 1
    assert numbers == list(range(0, count, distance))


def test_samples_are_small_compared_with_what_is_left(tmp_path: Path) -> None:
    text = scanned(tmp_path, [str(number) for number in range(5000)])
    assert sample_for(text, 999) == []
    assert 10 < len(sample_for(text, 1000)) <= 20
    assert 50 < len(sample_for(text, 5000)) <= 100
    assert sample_for(text, 10**7) == text.sample


def line(text: InputText, *, missing: int, devices: int = 4) -> str:
    """Return an estimate for a device that takes a millisecond per character."""
    return estimate(text, missing, lambda lines: sum(map(len, lines)) / 1000, "Some CPU", devices)


def test_an_estimate_is_in_proportion_to_the_characters_that_are_left(tmp_path: Path) -> None:
    lines = ["x" * (10 if number % 7 else 80) for number in range(50_000)]
    text, hours = scanned(tmp_path, lines), sum(map(len, lines)) / 1000 / 3600
    assert f"{1000 * hours:.0f}" == "278"
    assert line(text, missing=50_000, devices=1).startswith("estimate: 17 minutes on 1 x Some CPU (")
    assert line(text, missing=25_000, devices=1).startswith("estimate: 8 minutes on 1 x Some CPU (")
    assert line(text, missing=50_000, devices=4).startswith("estimate: 4 minutes on 4 x Some CPU (")


def test_short_times_are_in_seconds(tmp_path: Path) -> None:
    text = scanned(tmp_path, ["x" * 10] * 4000)
    assert line(text, missing=4000, devices=1).startswith("estimate: 40 seconds on 1 x Some CPU")


def test_few_lines_have_no_estimate(tmp_path: Path) -> None:
    assert line(scanned(tmp_path, ["x"] * 500), missing=500) == "no estimate, because 500 lines are too few"
