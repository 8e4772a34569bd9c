"""Kills, signals, a second process, a full disk and damaged files: nothing is lost, and resumed runs are exact."""

import resource
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.cli import main
from nmt.runs.checkpoints import resolve
from nmt.training.trainer import Trainer
from tests.integration.test_training import events, losses, weights
from tests.integration.toy import refuse, succeed
from tests.quick_processes import Running, wait_for


def train_until_told(arguments: list[str], step: int, waits: Path, told: Path) -> int:
    """Run `nmt train`; before the update after `step`, make a file and wait for another one."""
    update = Trainer.update

    def update_if_told(trainer: Trainer, *batch: Any) -> Any:
        if trainer.step == step:
            waits.touch()
            wait_for(told.exists)
        return update(trainer, *batch)

    Trainer.update = update_if_told  # type: ignore[assignment,method-assign]
    return main(arguments)


def assert_same_weights(outputs: Path, whole: Path) -> None:
    resumed, expected = weights(outputs, 40), weights(whole, 40)
    assert all(torch.equal(resumed[name], expected[name]) for name in expected)


def test_killed_and_resumed_run_equals_an_uninterrupted_one(settings: list[str], whole: Path, tmp_path: Path) -> None:
    command = ["train", *settings, f"paths.outputs={tmp_path}", "training.save_every=7"]
    process = Running(train_until_told, command, 16, tmp_path / "waits", tmp_path / "never")
    wait_for((tmp_path / "waits").exists)
    assert "is being trained by another process: wait until it is done, or give this run another" in refuse(command)
    process.send_signal(signal.SIGKILL)
    assert process.wait().returncode == -signal.SIGKILL
    assert events(tmp_path)[-1]["step"] == 16
    assert "going on from step 14" in succeed(command)
    assert losses(tmp_path) == losses(whole)
    assert_same_weights(tmp_path, whole)


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGUSR1, marks=pytest.mark.slow)])
def test_signal_saves_and_the_run_resumes_with_the_same_weights(
    number: signal.Signals, settings: list[str], whole: Path, tmp_path: Path
) -> None:
    command = ["train", *settings, f"paths.outputs={tmp_path}", "training.log_every=4"]
    process = Running(train_until_told, command, 11, tmp_path / "waits", tmp_path / "told")
    wait_for((tmp_path / "waits").exists)
    process.send_signal(number)
    (tmp_path / "told").touch()
    done = process.wait()
    assert done.returncode == 143
    assert resolve(tmp_path / "toy", "last").name == "step-00000011"  # the update was abandoned
    assert "the same command goes on from here" in done.stdout
    succeed(command)
    assert_same_weights(tmp_path, whole)
    assert [line["step"] for line in events(tmp_path)] == list(range(4, 41, 4))


def run_with_small_files(arguments: list[str], most_bytes: int) -> int:
    """Run `nmt` in a process whose files cannot grow: real writes fail, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    return main(arguments)


def test_a_full_disk_ends_the_run_which_resumes_once_there_is_room(
    settings: list[str], whole: Path, tmp_path: Path
) -> None:
    command = ["train", *settings, f"paths.outputs={tmp_path}"]
    succeed([*command, "training.steps=20"])
    size = (tmp_path / "toy" / "checkpoints" / "last" / "trainer.pt").stat().st_size
    done = Running(run_with_small_files, command, size // 2).wait()
    assert done.returncode == 2
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("nmt: ")]
    assert f"cannot write {tmp_path}/toy/checkpoints/step-00000030: File too large. Free some space or choose" in error
    assert {path.name for path in (tmp_path / "toy" / "checkpoints").iterdir()} == {
        "best", "last", "step-00000010", "step-00000020",
    }  # fmt: skip
    succeed(command)
    assert_same_weights(tmp_path, whole)


def test_a_folder_that_cannot_be_written_is_refused(settings: list[str]) -> None:
    assert "cannot write to /proc/runs/toy: " in refuse(["train", *settings, "paths.outputs=/proc/runs"])


def flip_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("name", "damage"), [("train.en.tokens", flip_bit), ("valid.de", truncate), ("tokenizer.model", flip_bit)]
)
def test_damaged_data_is_refused_by_name(name: str, damage: Any, settings: list[str], tmp_path: Path) -> None:
    data = Path(next(s for s in settings if s.startswith("paths.data=")).split("=")[1])
    file = data / "toy" / name
    content = file.read_bytes()
    try:
        damage(file)
        error = refuse(["train", *settings, f"paths.outputs={tmp_path}"])
    finally:
        file.write_bytes(content)
    assert str(file) in error
    assert "make data" in error
    assert not (tmp_path / "toy" / "checkpoints").exists()
