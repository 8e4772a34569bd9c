"""Weights & Biases and TensorBoard get what happens to a run, and never stop it."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
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


def wandb_records(path: Path) -> list[Any]:
    """Read a run that wandb left behind. Its own process may still be writing when the run is said to be finished."""
    for _ in range(200):
        records = list(read_records(path))
        if any(record.WhichOneof("record_type") == "exit" for record in records):
            return records
        time.sleep(0.1)
    raise AssertionError(f"{path} has no end")


def read_records(path: Path) -> Iterator[Any]:
    """Read LevelDB's log format, after seven bytes of wandb's own, holding protobufs."""
    from wandb.proto import wandb_internal_pb2

    content, block, place, record = path.read_bytes(), 32768, 7, b""
    while place + 7 <= len(content):
        if block - place % block < 7:
            place += block - place % block
            continue
        size, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        if place + 7 + size > len(content):
            return  # its end has not been written yet
        record += content[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield wandb_internal_pb2.Record.FromString(record)
            record = b""


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


def test_wandb_offline_records_the_whole_run(
    tmp_path: Path, isolated_wandb: Callable[..., None], capfd: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "demo"
    for step in (10, 20):  # the second is a resumed part of the same run
        with suppress(RuntimeError), start(tmp_path, step - 10, wandb="offline") as tracker:
            tracker.log("train", step, loss=step / 4, gradient_norm=math.nan)
            if step == 20:
                raise RuntimeError("wrong")
        second = int(time.time())
        while int(time.time()) == second:  # wandb names its folders by the second
            time.sleep(0.02)
    with start(tmp_path, None, wandb="offline") as tracker:
        tracker.log("test", 40, bleu=12.5)
    identity = (run / "wandb-id.txt").read_text()
    files = sorted((run / "wandb").glob(f"offline-run-*-{identity}/run-{identity}.wandb"))
    records = [record for file in files for record in wandb_records(file)]
    of_kind = {
        kind: [each for each in records if each.WhichOneof("record_type") == kind] for kind in ("run", "history")
    }
    started = [record.run for record in of_kind["run"]]
    assert {(found.run_id, found.project, found.display_name) for found in started} == {(identity, "nmt", "demo")}
    settings = {item.key: json.loads(item.value_json) for item in started[0].config.update if item.value_json}
    assert (settings["seed"], settings["model.layers"]) == (1, 6)
    told = [
        {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
        for record in records
        if record.WhichOneof("record_type") == "history"
    ]
    assert [(row["step"], row.get("train/loss"), row.get("test/bleu")) for row in told] == [
        (10, 2.5, None),
        (20, 5.0, None),
        (40, None, 12.5),
    ]
    assert [each.exit.exit_code for each in records if each.WhichOneof("record_type") == "exit"] == [0, 1, 0]
    assert "warning" not in capfd.readouterr().err
    assert [event.step for event in read_metrics(run / "metrics.jsonl")] == [10, 20]


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
