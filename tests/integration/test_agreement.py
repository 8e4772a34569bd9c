"""Processes of different speeds end at the same step, soon after one of them receives a signal, and resume exactly."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration import ranks
from tests.quick_processes import start_group


def train(folder: Path, processes: int, signal_step: int = 0) -> list[dict[str, Any]]:
    """Train in several processes, and return what each reports."""
    started = start_group(ranks.main, folder, signal_step, processes=processes)
    ended = [process.wait() for process in started]
    assert all(done.returncode == 0 for done in ended), [done.stderr for done in ended]
    return [json.loads(done.stdout.splitlines()[-1]) for done in ended]


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_that_a_signal_to_one_ends_resume_with_the_losses_of_undisturbed_ones(
    processes: int, tmp_path: Path
) -> None:
    whole = train(tmp_path / "whole", processes)
    first = train(tmp_path / "parts", processes, signal_step=33)
    assert {each["ending"] for each in first} == {"SIGNAL"}
    (step,) = {each["step"] for each in first}
    assert 33 <= step <= 35
    assert (tmp_path / "parts" / "checkpoints" / f"step-{step:08}").is_dir()
    second = train(tmp_path / "parts", processes)
    assert {each["ending"] for each in (*whole, *second)} == {"DONE"}
    for before, after, expected in zip(first, second, whole, strict=True):
        assert before["losses"] + after["losses"] == expected["losses"]
        assert after["weights"] == expected["weights"]
