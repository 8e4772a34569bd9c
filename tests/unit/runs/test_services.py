"""Weights & Biases and TensorBoard get what happens to a run, and never stop it."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from nmt.config.commands import TrackingConfig
from nmt.config.tree import Config, PathsConfig
from nmt.runs import services as services_module
from nmt.runs.services import open_services
from nmt.runs.tracker import Tracker, read_metrics


def start(folder: Path, step: int | None = 0, **tracking: Any) -> Tracker:
    """Begin to train the run `demo` in a folder after a step, or to evaluate it."""
    config = Config(name="demo", paths=PathsConfig(outputs=str(folder)), tracking=TrackingConfig(**tracking))
    config.run_folder.mkdir(exist_ok=True)
    metrics = None if step is None else config.run_folder / "metrics.jsonl"
    return Tracker(metrics, step or 0, open_services(config, step))


@pytest.fixture
def isolated_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Isolate wandb from the account, the settings and the network of the user who runs the tests."""
    for name in ("HOME", "WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR", "NETRC"):
        monkeypatch.setenv(name, str(tmp_path / "home" / name))
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_DIR", "WANDB_PROJECT", "WANDB_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    return lambda key: monkeypatch.setenv("WANDB_API_KEY", key)


def test_wandb_offline_gets_the_whole_run_as_one(
    tmp_path: Path,
    isolated_wandb: Callable[..., None],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import wandb

    opened, told, codes = list[Any](), list[dict[str, object]](), list[int]()
    init, log, finish = wandb.init, wandb.Run.log, wandb.Run.finish
    monkeypatch.setattr(wandb, "init", lambda **given: opened.append(init(**given)) or opened[-1])  # type: ignore[func-returns-value]
    monkeypatch.setattr(wandb.Run, "log", lambda run, row: told.append(row) or log(run, row))  # type: ignore[func-returns-value]
    monkeypatch.setattr(wandb.Run, "finish", lambda run, exit_code: codes.append(exit_code) or finish(run, exit_code))  # type: ignore[func-returns-value]
    for step in (10, 20):  # the second is a resumed part of the same run
        with suppress(RuntimeError), start(tmp_path, step - 10, wandb="offline") as tracker:
            tracker.log("train", step, loss=step / 4)
            if step == 20:
                raise RuntimeError("wrong")
    with start(tmp_path, None, wandb="offline") as tracker:
        tracker.log("test", 40, bleu=12.5)
    assert {(run.id, run.project, run.name, run.config["model.layers"]) for run in opened} == {
        ((tmp_path / "demo" / "wandb-id.txt").read_text(), "nmt", "demo", 6)
    }
    assert told == [{"step": 10, "train/loss": 2.5}, {"step": 20, "train/loss": 5.0}, {"step": 40, "test/bleu": 12.5}]
    assert codes == [0, 1, 0]
    assert "warning" not in capfd.readouterr().err
    assert [event.step for event in read_metrics(tmp_path / "demo" / "metrics.jsonl")] == [10, 20]


def test_tensorboard_reads_the_curves_and_the_scores(tmp_path: Path) -> None:
    reading = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs the extra tensorboard"
    )
    for first in (1, 2):  # the second is a resumed part, which goes over step 2 again
        with start(tmp_path, first - 1, tensorboard=True) as tracker:
            for step in (first, first + 1):
                tracker.log("train", step, loss=step / first, text="no number")
    for step in (40, 1):  # scores of an earlier checkpoint hide nothing
        with start(tmp_path, None, tensorboard=True) as tracker:
            tracker.log("test", step, bleu=12.5)
    found = reading.EventAccumulator(str(tmp_path / "demo" / "tensorboard")).Reload()
    assert [(each.step, each.value) for each in found.Scalars("train/loss")] == [(1, 1.0), (2, 1.0), (3, 1.5)]
    assert [(each.step, each.value) for each in found.Scalars("test/bleu")] == [(40, 12.5), (1, 12.5)]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("no login", "you are not logged in: run `wandb login`"),
        ("no package", "import of wandb halted"),
        pytest.param("no server", "", marks=pytest.mark.slow),
    ],
)
def test_a_run_continues_without_wandb_after_one_warning(
    tmp_path: Path,
    isolated_wandb: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    reason: str,
) -> None:
    if fault == "no package":
        monkeypatch.setitem(sys.modules, "wandb", None)
    elif fault == "no server":
        isolated_wandb("0" * 40)
        monkeypatch.setattr(services_module, "INIT_SECONDS", 1)
    with start(tmp_path, wandb="online") as tracker:
        tracker.log("train", 1, loss=1.0)
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert len(warnings) == 1
    assert f"Weights & Biases does not work ({reason}" in warnings[0]
    assert [event.step for event in read_metrics(tmp_path / "demo" / "metrics.jsonl")] == [1]
