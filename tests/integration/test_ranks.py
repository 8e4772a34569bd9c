"""Two processes of which one fails: the other ends soon and says why, and the plain command goes on."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.toy import call, environment

TOP = Path(__file__).parents[2]
TORCHRUN = [sys.executable, str(TOP / "scripts" / "torchrun"), "--standalone", "--nproc-per-node=2"]
SHORT = ["training.steps=20", "training.valid_sentences=0", "training.save_every=5", "training.valid_every=5"]


def start(arguments: list[str], fault: str = "", step: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `nmt` in two processes under torchrun, with a fault in the second one."""
    program = ["-m", "tests.integration.faulty", fault, str(step)] if fault else ["-m", "nmt"]
    options = ["--max-restarts=1"] if "MARK" in more else []
    return subprocess.run(
        [*TORCHRUN, *options, *program, *arguments],
        capture_output=True, text=True, check=False, timeout=240, cwd=TOP, env={**environment(), **more},
    )  # fmt: skip


def weights(outputs: Path, step: int = 20) -> bytes:
    return (outputs / "toy" / "checkpoints" / f"step-{step:08}" / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def two(settings: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on two processes that nothing interrupts."""
    outputs = tmp_path_factory.mktemp("two")
    done = start(["train", *settings, *SHORT, f"paths.outputs={outputs}"])
    assert done.returncode == 0, done.stderr
    return outputs


@pytest.mark.slow
def test_one_is_killed_in_a_step(settings: list[str], two: Path, tmp_path: Path) -> None:
    command = ["train", *settings, *SHORT, f"paths.outputs={tmp_path}"]
    done = start(command, "kill", 13)
    assert done.returncode == 137
    assert "rank 1 was killed by SIGKILL" in done.stderr
    assert "nmt: rank 0 stops, for another process has ended" in done.stderr
    assert "Traceback" not in done.stderr
    done = start(command)
    assert done.returncode == 0, done.stderr
    assert "going on from step 10" in done.stdout
    assert weights(tmp_path) == weights(two)


@pytest.mark.slow
def test_one_raises_an_error(settings: list[str], two: Path, tmp_path: Path) -> None:
    command = ["train", *settings, *SHORT, f"paths.outputs={tmp_path}"]
    done = start(command, "raise", 8)
    assert done.returncode == 1
    assert "this process has gone mad" in done.stderr
    assert start(command).returncode == 0
    assert weights(tmp_path) == weights(two)


@pytest.mark.slow
def test_one_hangs(settings: list[str], tmp_path: Path) -> None:
    command = ["train", *settings, *SHORT, f"paths.outputs={tmp_path}", "runtime.timeout_minutes=0.1"]
    before = time.monotonic()
    done = start(command, "stop", 8)  # torchrun itself waits half a minute before it kills the process that hangs
    assert done.returncode != 0
    assert time.monotonic() - before < 120
    assert "has not answered for runtime.timeout_minutes=0.1" in done.stderr


@pytest.mark.slow
def test_one_drifts_from_the_other(settings: list[str], two: Path, tmp_path: Path) -> None:
    command = ["train", *settings, *SHORT, f"paths.outputs={tmp_path}"]
    done = start(command, "drift", 8)
    assert done.returncode == 2
    assert "the weights of rank 1 are not those of rank 0 at step 10; at step 5 they were" in done.stderr
    assert start(command).returncode == 0
    assert weights(tmp_path) == weights(two)


def test_one_has_other_settings(settings: list[str], tmp_path: Path) -> None:
    done = start(["train", *settings, *SHORT, f"paths.outputs={tmp_path}"], "settings")
    assert done.returncode == 2
    assert "rank 1 has other settings than rank 0: training.clip_norm is 1.0, not 0.0" in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("nmt:")]) == 1


@pytest.mark.slow
def test_one_has_other_data(settings: list[str], tmp_path: Path) -> None:
    other = [*settings, f"paths.data={tmp_path / 'other'}"]
    text = next(setting for setting in settings if setting.startswith("data.train=")).partition("=")[2]
    valid = next(setting for setting in settings if setting.startswith("data.valid=")).partition("=")[2]
    assert call(["data", *other, f"data.train={valid}", f"data.valid={text}"]).returncode == 0
    command = ["train", *settings, *SHORT, f"paths.outputs={tmp_path}"]
    done = start(command, "data", OTHER_DATA=str(tmp_path / "other"))
    assert done.returncode == 2
    assert "rank 1 has other files than rank 0: the " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_torchrun_starts_a_failed_process_again(settings: list[str], two: Path, tmp_path: Path) -> None:
    command = ["train", *settings, *SHORT, f"paths.outputs={tmp_path / 'outputs'}"]
    done = start(command, "once-kill", 13, MARK=str(tmp_path / "killed"))
    assert done.returncode == 0, done.stderr
    assert "going on from step 10" in done.stdout
    assert weights(tmp_path / "outputs") == weights(two)
