"""The sections of the check of a device: what fails is recorded, and the rest goes on."""

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from nmt.compute.time_limit import OutOfTimeError
from nmt.features.doctor import gpu
from nmt.features.doctor.gpu import Section
from nmt.measuring.accuracy import Comparison


def guarded(run: Iterator[object], seconds: float = 10.0) -> dict[str, object]:
    return gpu.guarded(Section("section", seconds, lambda: run), time.monotonic() + 100)


def test_results_before_a_failure_are_kept() -> None:
    def run() -> Iterator[object]:
        yield {"name": "first", "value": 1.5}
        raise RuntimeError("CUDA error")

    section = guarded(run())
    assert section["results"] == [{"name": "first", "value": 1.5}]
    assert section["error"] == "RuntimeError: CUDA error"


def test_section_that_takes_too_long_is_ended() -> None:
    def run() -> Iterator[object]:
        yield {"name": "first"}
        while True:
            pass

    section = guarded(run(), seconds=0.05)
    assert section["results"] == [{"name": "first"}]
    assert section["error"] == "no time left"


def test_section_ends_after_a_result_in_whose_time_a_library_caught_the_interrupt() -> None:
    def run() -> Iterator[object]:
        with suppress(OutOfTimeError):
            while True:
                pass
        yield {"name": "late"}
        yield {"name": "never"}

    section = guarded(run(), seconds=0.05)
    assert section["results"] == [{"name": "late"}]
    assert section["error"] == "no time left"


def test_section_after_the_end_of_all_time_does_not_begin() -> None:
    section = gpu.guarded(Section("late", 10, lambda: pytest.fail("it has begun")), time.monotonic() - 1)
    assert section["error"] == "no time left"


def test_measurement_that_fails_does_not_end_its_section(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> object:
        raise ValueError("out of range")

    section = guarded(iter([gpu.attempt("big", fail), gpu.attempt("base", lambda: {"name": "base"})]))
    failure = {"name": "big", "correct": False, "error": "ValueError: out of range"}
    assert section["results"] == [failure, {"name": "base"}]
    assert "big" in capsys.readouterr().out


def test_wrong_results_and_failed_sections_are_problems() -> None:
    comparisons = [Comparison("fp32", 0.0, 1e-7, 1e-4, correct=True), Comparison("bf16", 0.1, 0.5, 0.08, correct=False)]
    report = {"sections": {"steps": guarded(iter(comparisons)), "links": {"error": "broken", "results": []}}}
    assert gpu.problems(report) == ["bf16 is WRONG", "links failed"]
