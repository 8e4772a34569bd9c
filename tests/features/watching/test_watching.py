"""Processes of a real group that hang, stop, are slow, or have other weights."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from nmt.cli import main
from nmt.runs.checkpoints import Checkpoints
from tests.integration import faulty
from tests.integration.conftest import corpus, settings
from tests.integration.test_training import events
from tests.quick_processes import Running, start_group, wait_for

__all__ = ["corpus", "settings"]

WATCHED = ["watch.every=10", "training.steps=40", "training.valid_every=40", "training.save_every=40"]


def start(fault: str, step: int, settings: list[str], outputs: Path, *more: str) -> list[Running]:
    """Start two processes, of which the second has a fault."""
    words = ["train", *settings, *WATCHED, "training.valid_sentences=0", f"paths.outputs={outputs}", *more]
    return start_group(faulty.main, fault, str(step), *words, processes=2)


def save_slowly(*words: str) -> int:
    """Run `nmt` on a disk that takes longer than processes wait for each other, and than hangs are reported after."""
    save = Checkpoints.save

    def slow(self: Checkpoints, step: int, **what: Any) -> Path:
        time.sleep(8)
        return save(self, step, **what)

    Checkpoints.save = slow  # type: ignore[method-assign]
    return main(words)


def errors(process: Running) -> str:
    path = process.logs / "errors"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def end(group: list[Running]) -> None:
    for each in group:
        each.process.kill()
        each.process.join()
        shutil.rmtree(each.logs)


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "says"), [("sleep", "for rank 1 on"), ("stop", "does not answer")])
def test_a_process_that_hangs_is_named_and_written_down(
    fault: str, says: str, settings: list[str], tmp_path: Path
) -> None:
    group = start(fault, 8, settings, tmp_path, "watch.hang_seconds=4", "training.log_every=40")
    try:
        wait_for(lambda: "warning: no step for" in errors(group[0]), seconds=120)
        line = next(line for line in errors(group[0]).splitlines() if "no step for" in line)
    finally:
        end(group)
    assert says in line
    assert "rank 1 on" in line
    flight = tmp_path / "toy" / "flight"
    operations = json.loads((flight / "rank-0.json").read_text())
    assert "gloo:all_reduce" in {each["profiling_name"] for each in operations}
    assert "trainer.py" in (flight / "rank-0.txt").read_text()
    assert (flight / "rank-1.txt").exists() == (fault == "sleep")
    if fault == "sleep":
        assert "the others wait (step 8, backward, operation" in line
        assert "(step 8, between steps" in line
        assert "faulty.py" in (flight / "rank-1.txt").read_text()


@pytest.mark.slow
def test_a_checkpoint_that_takes_long_is_no_hang_and_ends_nothing(settings: list[str], tmp_path: Path) -> None:
    words = ["training.steps=20", "training.log_every=2", "training.valid_sentences=0", f"paths.outputs={tmp_path}"]
    limits = ["watch.hang_seconds=2", "runtime.timeout_minutes=0.1"]
    group = start_group(save_slowly, "train", *settings, *words, *limits, processes=2)
    ended = [each.wait() for each in group]
    assert [each.returncode for each in ended] == [0, 0], ended[1].stderr
    assert "no step for" not in ended[0].stderr
    assert not [*(tmp_path / "toy" / "flight").glob("rank-*")]


def test_other_weights_of_a_process_end_the_run_long_before_a_checkpoint(settings: list[str], tmp_path: Path) -> None:
    group = start("drift", 12, settings, tmp_path, "watch.checksum_every=5")
    ended = [each.wait() for each in group]
    assert [each.returncode for each in ended] == [2, 2]
    said = [line for each in ended for line in each.stderr.splitlines() if line.startswith("nmt:")]
    assert len(said) == 1
    assert "differ from those of rank 0 at step 15, but not at step 10 (vectors.shared" in said[0]


def test_a_slow_process_is_named_and_logged(settings: list[str], tmp_path: Path) -> None:
    ended = [each.wait() for each in start("crawl", 0, settings, tmp_path)]
    assert [each.returncode for each in ended] == [0, 0], ended[0].stderr
    warnings = [line for line in ended[0].stderr.splitlines() if "is slow" in line]
    assert len(warnings) == 1  # it stays slow
    assert "warning: rank 1 on" in warnings[0]
    compared = [event for event in events(tmp_path) if "slowest_rank" in event]
    assert [event["step"] for event in compared] == [11, 21, 31]
    assert {event["slowest_rank"] for event in compared} == {1}
    assert all(event["slowest_percent"] > 10 for event in compared)
