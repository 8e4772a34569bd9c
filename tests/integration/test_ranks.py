"""If one of two processes fails, the other exits soon and says why, and the plain command resumes."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.integration import faulty
from tests.integration.toy import environment
from tests.quick_processes import start_group, wait_for

TOP = Path(__file__).parents[2]
LAUNCH = """
import sys
sys.path.insert(0, "scripts")
import launch
launch.command = lambda _, words: words
sys.exit(launch.run_together(2, "", sys.argv[1:]))
"""
"""Starts two processes as `make train` does on two GPUs."""
SHORT = ["training.steps=20", "training.valid_sentences=0", "training.save_every=5", "training.valid_every=5"]


class Pair(NamedTuple):
    """A run that two processes train together, under torchrun."""

    settings: list[str]
    outputs: Path

    def train(self, fault: str = "", step: int = 0, *more: str) -> subprocess.CompletedProcess[str]:
        """Train with a fault in the second process."""
        process = self.start(fault, step, *more)
        output, errors = process.communicate(timeout=600)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def start(self, fault: str = "", step: int = 0, *more: str, waiting: Path = Path()) -> subprocess.Popen[str]:
        """Start the same training without waiting for its end."""
        program = ["-m", "tests.integration.faulty", fault, str(step)] if fault else ["-m", "nmt"]
        command = [*program, "train", *self.settings, *SHORT, f"paths.outputs={self.outputs}", *more]
        return subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *command],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=TOP,
            env={**environment(), "WAITING": str(waiting)},
        )  # fmt: skip

    def weights(self, step: int = 20) -> bytes:
        """Return the weights of a checkpoint."""
        return (self.outputs / "toy" / "checkpoints" / f"step-{step:08}" / "model.safetensors").read_bytes()


@pytest.fixture
def pair(settings: list[str], tmp_path: Path) -> Pair:
    """Return a run that has not started."""
    return Pair(settings, tmp_path / "outputs")


@pytest.fixture(scope="module")
def whole_pair(settings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Return an uninterrupted run."""
    pair = Pair(settings, tmp_path_factory.mktemp("pair"))
    done = pair.train()
    assert done.returncode == 0, done.stderr
    return pair


@pytest.mark.slow
def test_killed_rank_ends_the_others_and_the_run_resumes(pair: Pair, whole_pair: Pair) -> None:
    done = pair.train("kill", 13)
    assert done.returncode == 137
    assert "failed (exitcode: -9) local_rank: 1" in done.stderr
    assert "nmt: rank 0 stops because another process has ended" in done.stderr
    assert "Traceback" not in done.stderr
    done = pair.train()
    assert done.returncode == 0, done.stderr
    assert "going on from step 10" in done.stdout
    assert pair.weights() == whole_pair.weights()


@pytest.mark.slow
def test_hanging_rank_ends_the_others_after_the_timeout(pair: Pair) -> None:
    before = time.monotonic()
    # torchrun itself waits half a minute before it kills the process that hangs
    done = pair.train("stop", 8, "runtime.timeout_minutes=0.1")
    assert done.returncode != 0
    assert time.monotonic() - before < 120
    assert "has not answered for runtime.timeout_minutes=0.1" in done.stderr


@pytest.mark.slow
def test_drifting_rank_is_named_before_anything_is_saved(pair: Pair, whole_pair: Pair) -> None:
    done = pair.train("drift", 8)
    assert done.returncode == 2
    assert "the weights of rank 1 differ from those of rank 0 at step 10" in done.stderr
    assert pair.train().returncode == 0
    assert pair.weights() == whole_pair.weights()


def test_different_settings_on_one_rank_are_refused(pair: Pair) -> None:
    words = ["train", *pair.settings, *SHORT, f"paths.outputs={pair.outputs}"]
    ended = [each.wait() for each in start_group(faulty.main, "settings", "0", *words, processes=2)]
    assert [each.returncode for each in ended] == [2, 2]
    errors = [line for each in ended for line in each.stderr.splitlines() if line.startswith("nmt:")]
    assert len(errors) == 1
    assert "rank 1 has other settings or files than rank 0: training.clip_norm is 1.0, not 0.0" in errors[0]


def test_a_signal_to_one_of_two_processes_ends_both_at_a_step_from_which_they_resume_exactly(pair: Pair) -> None:
    whole = Pair(pair.settings, pair.outputs / "whole")
    said = ""
    for run, step, code in ((whole, "0", 0), (pair, "8", 143), (pair, "0", 0)):  # no step has the number 0
        words = ["train", *pair.settings, *SHORT, f"paths.outputs={run.outputs}"]
        ended = [each.wait() for each in start_group(faulty.main, "end", step, *words, processes=2)]
        assert [each.returncode for each in ended] == [code, code], ended
        said = ended[0].stdout
    assert re.search("going on from step (8|9|10) ", said)
    assert pair.weights() == whole.weights()


@pytest.mark.slow
def test_signals_to_torchrun_save_and_exit_with_143(pair: Pair, whole_pair: Pair) -> None:
    waiting = pair.outputs / "waiting"
    process = pair.start("wait", 8, waiting=waiting)
    wait_for(waiting.exists, seconds=120)
    before = time.monotonic()
    for _ in range(2):  # Slurm tells all processes, and its script torchrun again
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 143
    assert time.monotonic() - before < 100
    assert output.count("everything is saved") == 1
    assert "Traceback" not in errors
    done = pair.train()
    assert done.returncode == 0, done.stderr
    assert re.search("going on from step (8|9|10) ", done.stdout)  # they agree where a save is due at the latest
    assert pair.weights() == whole_pair.weights()
