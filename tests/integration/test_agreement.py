"""Processes of different speeds end at the same step, soon after one of them receives a signal, and resume exactly."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration import ranks
from tests.quick_processes import start_group


def train(folder: Path, processes: int, signal_step: int = 0, **settings: Any) -> list[dict[str, Any]]:
    """Train in several processes, and return what each reports."""
    started = start_group(ranks.main, folder, settings, signal_step, processes=processes)
    ended = [process.wait() for process in started]
    assert all(done.returncode == 0 for done in ended), [done.stderr for done in ended]
    return [json.loads(done.stdout.splitlines()[-1]) for done in ended]


NEVER = {"steps": 2000, "valid_every": 2000, "save_every": 2000}
RUN = {"steps": 60, "valid_every": 25, "save_every": 20}


@pytest.fixture(scope="module")
def whole_pair(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return what two processes report that nothing disturbs."""
    reports = train(tmp_path_factory.mktemp("whole"), 2, **RUN)
    assert [each["ending"] for each in reports] == ["DONE", "DONE"]
    return reports


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_a_signal_to_one_process_ends_all_at_the_same_step(tmp_path: Path, processes: int) -> None:
    reports = train(tmp_path, processes, signal_step=50, **NEVER)
    assert {each["ending"] for each in reports} == {"SIGNAL"}
    assert {each["step"] for each in reports} == {reports[0]["step"]}
    assert 50 <= reports[0]["step"] <= 52
    assert (tmp_path / "checkpoints" / f"step-{reports[0]['step']:08}").is_dir()


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_stopped_pair_resumes_with_the_losses_of_an_undisturbed_one(
    whole_pair: list[dict[str, Any]], tmp_path: Path, before: bool, after: bool
) -> None:
    """The optimizer may be sharded before or after the interruption."""
    first = train(tmp_path, 2, signal_step=33, shard_optimizer=before, **RUN)
    second = train(tmp_path, 2, shard_optimizer=after, **RUN)
    assert [each["ending"] for each in (*first, *second)] == ["SIGNAL"] * 2 + ["DONE"] * 2
    for rank in (0, 1):
        assert first[rank]["losses"] + second[rank]["losses"] == whole_pair[rank]["losses"]
        assert second[rank]["weights"] == whole_pair[rank]["weights"]


@pytest.mark.slow
def test_a_sharded_run_resumes_on_another_number_of_devices(tmp_path: Path) -> None:
    (first, _) = train(tmp_path, 2, signal_step=33, shard_optimizer=True, **RUN)
    (alone,) = train(tmp_path, 1, signal_step=50, shard_optimizer=True, **RUN)
    last = train(tmp_path, 3, shard_optimizer=True, **RUN)
    assert [first["ending"], alone["ending"]] == ["SIGNAL", "SIGNAL"]
    assert [each["ending"] for each in last] == ["DONE"] * 3
    assert alone["step"] == 50
    assert len(last[0]["losses"]) == 10
    assert max(last[0]["losses"]) < min(first["losses"][:3])
