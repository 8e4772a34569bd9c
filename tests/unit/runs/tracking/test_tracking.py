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
from nmt.errors import UserError
from nmt.runs import services as services_module
from nmt.runs.services import evaluation_services, open_services
from nmt.runs.tracker import Tracker, read_metrics
from tests.integration.conftest import corpus, settings

__all__ = ["corpus", "settings"]


def settings_of(folder: Path, name: str = "demo", **tracking: Any) -> Config:
    """Return settings of a run in a folder."""
    return Config(name=name, paths=PathsConfig(outputs=str(folder)), tracking=TrackingConfig(**tracking))


def start(folder: Path, step: int = 0, **tracking: Any) -> Tracker:
    return Tracker(folder / "demo", step, open_services(settings_of(folder, **tracking), step))


def tell(config: Config, step: int) -> None:
    with evaluation_services(config) as tell_services:
        tell_services("test", step, {"bleu": 12.5})


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
    run.mkdir()
    (run / "wandb-id.txt").touch()  # as if a full disk had left it empty
    for step in (10, 20):  # the second is a resumed part of the same run
        with start(tmp_path, step - 10, wandb="offline") as tracker:
            tracker.log("train", step, loss=step / 4, gradient_norm=math.nan)
        second = int(time.time())
        while step == 10 and int(time.time()) == second:  # wandb names its folders by the second
            time.sleep(0.02)
    identity = (run / "wandb-id.txt").read_text()
    files = sorted((run / "wandb").glob(f"offline-run-*-{identity}/run-{identity}.wandb"))
    parts = [wandb_records(file) for file in files]
    records = [record for part in parts for record in part]
    started = [record.run for record in records if record.WhichOneof("record_type") == "run"]
    assert {(found.run_id, found.project, found.display_name) for found in started} == {(identity, "nmt", "demo")}
    settings = {item.key: json.loads(item.value_json) for item in started[0].config.update if item.value_json}
    assert settings["seed"] == 1
    assert settings["model.layers"] == 6
    told = [
        {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
        for record in records
        if record.WhichOneof("record_type") == "history"
    ]
    assert [(row["step"], row["train/loss"]) for row in told] == [(10, 2.5), (20, 5.0)]
    assert "warning" not in capfd.readouterr().err
    assert [event.step for event in read_metrics(run / "metrics.jsonl")] == [10, 20]


@pytest.mark.parametrize(
    ("error", "code"), [(None, 0), (RuntimeError("wrong"), 1), (SystemExit(143), 143), (SystemExit(), 0)]
)
def test_wandb_gets_the_exit_code_of_the_run(
    tmp_path: Path, isolated_wandb: Callable[..., None], error: BaseException | None, code: int
) -> None:
    with suppress(RuntimeError, SystemExit), start(tmp_path, wandb="offline") as tracker:
        tracker.log("train", 1, loss=1.0)
        if error is not None:
            raise error
    (file,) = tmp_path.glob("demo/wandb/offline-run-*/run-*.wandb")
    (ended,) = (record.exit for record in wandb_records(file) if record.WhichOneof("record_type") == "exit")
    assert ended.exit_code == code


def test_wandb_offline_gets_scores(
    tmp_path: Path, isolated_wandb: Callable[..., None], capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "some/name").mkdir(parents=True)
    tell(settings_of(tmp_path, "some/name", wandb="offline"), 40)
    assert "warning" not in capfd.readouterr().err
    file = next((tmp_path / "some/name/wandb").glob("offline-run-*/run-*.wandb"))
    records = wandb_records(file)
    rows = [record.history for record in records if record.WhichOneof("record_type") == "history"]
    told = {item.key: json.loads(item.value_json) for item in rows[0].item if item.key}
    told |= {"/".join(item.nested_key): json.loads(item.value_json) for item in rows[0].item if item.nested_key}
    assert (told["step"], told["test/bleu"]) == (40, 12.5)


def test_tensorboard_reads_the_curves_and_the_scores(tmp_path: Path) -> None:
    reading = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs the extra tensorboard"
    )
    for first in (1, 2):  # the second is a resumed part, which goes over step 2 again
        with start(tmp_path, first - 1, tensorboard=True) as tracker:
            for step in (first, first + 1):
                tracker.log("train", step, loss=step / first, text="no number")
    for step in (40, 1):  # scores of an earlier checkpoint hide nothing
        tell(settings_of(tmp_path, tensorboard=True), step)
    found = reading.EventAccumulator(str(tmp_path / "demo" / "tensorboard")).Reload()
    assert [(each.step, each.value) for each in found.Scalars("train/loss")] == [(1, 1.0), (2, 1.0), (3, 1.5)]
    assert [(each.step, each.value) for each in found.Scalars("test/bleu")] == [(40, 12.5), (1, 12.5)]


def test_a_missing_tensorboard_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    monkeypatch.delenv("NMT_INSTALL", raising=False)
    with pytest.raises(UserError, match=r"needs the package tensorboard: .* -m pip install 'tensorboard>="):
        start(tmp_path, tensorboard=True)


def goes_on_with_one_warning(
    folder: Path, capsys: pytest.CaptureFixture[str], reason: str, wandb: str = "online"
) -> None:
    with start(folder, wandb=wandb) as tracker:
        for step in (1, 2, 3):
            tracker.log("train", step, loss=1.0)
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning")]
    assert len(warnings) == 1
    assert f"Weights & Biases does not work ({reason}" in warnings[0]
    assert [event.step for event in read_metrics(folder / "demo" / "metrics.jsonl")] == [1, 2, 3]


def test_without_a_login_the_run_continues(
    tmp_path: Path, isolated_wandb: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    goes_on_with_one_warning(tmp_path, capsys, "you are not logged in: run `wandb login`")


@pytest.mark.slow
def test_with_an_unreachable_server_the_run_continues(
    tmp_path: Path,
    isolated_wandb: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    isolated_wandb("0" * 40)
    monkeypatch.setattr(services_module, "INIT_SECONDS", 1)
    goes_on_with_one_warning(tmp_path, capsys, "")


def test_without_the_package_the_run_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    goes_on_with_one_warning(tmp_path, capsys, "import of wandb halted", wandb="offline")


def test_if_wandb_fails_during_the_run_the_run_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        def log(self, _: Any) -> None:
            raise BrokenPipeError("the service is gone")

    monkeypatch.setattr(services_module, "_start_run", lambda *_: Broken())
    goes_on_with_one_warning(tmp_path, capsys, "the service is gone")
