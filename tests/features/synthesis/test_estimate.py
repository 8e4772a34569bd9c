"""Estimates of time and money, from samples of the text."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.features.synthesis.estimate import estimate, sample_for
from nmt.features.synthesis.settings import SynthesizeConfig
from nmt.features.synthesis.shards import SAMPLE_LINES, InputText, scan_input


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


def line(text: InputText, *, missing: int, device: str = "Some CPU", devices: int = 4, price: float = 0) -> str:
    """Return an estimate for a device that takes a millisecond per character."""
    return estimate(
        text, missing, lambda lines: sum(map(len, lines)) / 1000,
        device=device, memory=80 * 10**9, devices=devices, price=price,
    )  # fmt: skip


def test_an_estimate_is_in_proportion_to_the_characters_that_are_left(tmp_path: Path) -> None:
    lines = ["x" * (10 if number % 7 else 80) for number in range(50_000)]
    text, hours = scanned(tmp_path, lines), sum(map(len, lines)) / 1000 / 3600
    assert f"{1000 * hours:.0f}" == "278"
    assert line(text, missing=50_000, devices=1, price=100).startswith("estimate: 17 minutes on 1 x Some CPU, 27.")
    assert line(text, missing=25_000, devices=1).startswith("estimate: 8 minutes on 1 x Some CPU, set synthesize.price")
    assert line(text, missing=50_000, devices=4, price=100).startswith("estimate: 4 minutes on 4 x Some CPU, 27.")


def test_short_times_are_in_seconds(tmp_path: Path) -> None:
    text = scanned(tmp_path, ["x" * 10] * 4000)
    assert line(text, missing=4000, devices=1).startswith("estimate: 40 seconds on 1 x Some CPU")


def test_the_price_of_a_known_gpu_is_that_of_estimates(tmp_path: Path) -> None:
    text = scanned(tmp_path, ["x" * 100] * 50_000)
    found = line(text, missing=50_000, device="NVIDIA H100 80GB HBM3", devices=2)
    assert found.startswith("estimate: 42 minutes on 2 x NVIDIA H100 80GB HBM3, 4.17 dollars at 3.00 per hour of each")


def test_few_lines_have_no_estimate(tmp_path: Path) -> None:
    assert line(scanned(tmp_path, ["x"] * 500), missing=500) == "no estimate, because 500 lines are too few"


@pytest.mark.parametrize("price", [-1, float("nan"), float("inf")])
def test_an_impossible_price_is_refused(price: float) -> None:
    with pytest.raises(ConfigError, match=r"synthesize\.price="):
        SynthesizeConfig(price=price)
