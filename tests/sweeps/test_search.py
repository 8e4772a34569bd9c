"""A search with Optuna, in turn and with the launchers: it is resumed, and failed runs do not end it."""

import json
import signal
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.cli import main
from nmt.config.tree import Config
from nmt.errors import ConfigError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("optuna") is None, reason="needs the extra search: pip install -e .[search]"),
]
SEARCH = ("experiment=demo", "model.dropout=interval(0,0.3)", "training.learning_rate=tag(log,interval(0.001,0.01))",
          "model.heads=choice(2,3,4)", "hydra/sweeper=search", "hydra.sweeper.n_trials=8")  # fmt: skip
"""A search of three settings over eight runs; some fail, because three heads do not divide the width."""


def trained(config: Config) -> None:
    """Stand in for training: the loss depends on the settings alone; a finished run is not trained again."""
    metrics = config.run_folder / "metrics.jsonl"
    if metrics.exists():
        return
    metrics.parent.mkdir(parents=True)
    loss = 2 + config.model.dropout + abs(config.training.learning_rate - 0.004) * 100 + config.model.heads / 100
    metrics.write_text(json.dumps({"event": "valid", "step": 1, "time": 1, "loss": loss}) + "\n")


def records(folder: Path) -> list[dict[str, Any]]:
    found = [json.loads(file.read_text()) for file in (folder / "outputs" / "sweeps" / "demo").glob("*.json")]
    return sorted(found, key=lambda each: each["number"])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    for command in ("train", "chain"):
        monkeypatch.setattr(import_module(f"nmt.commands.{command}"), "run", trained)
    before = signal.getsignal(signal.SIGINT)
    yield tmp_path
    signal.signal(signal.SIGINT, before)


def test_failed_runs_do_not_end_a_search(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(config: Config) -> None:
        if config.model.heads == 2:
            raise ConfigError("no room")
        trained(config)

    monkeypatch.setattr(import_module("nmt.commands.train"), "run", run)
    assert main(["train", "-m", *SEARCH]) == 0
    found = records(here)  # a run whose settings contradict each other has none
    assert 1 < len(found) < 8
    assert all((each["error"], each["result"] is None) == ("no room", True) for each in found if each["error"])
    assert len({bool(each["error"]) for each in found}) == 2


def test_a_range_replaces_an_earlier_value(here: Path) -> None:
    assert main(["train", "-m", "model.dropout=0.25", *SEARCH]) == 0
    found = records(here)
    assert 1 < len(found) == len({each["values"]["model.dropout"] for each in found})


@pytest.mark.parametrize(
    ("command", "metric", "best"),
    [("train", "loss", min), ("train", "bleu", max), ("all", "test.ter", min), ("all", "test.chrf", max)],
)
def test_a_search_looks_for_the_best_of_its_metric(
    here: Path, monkeypatch: pytest.MonkeyPatch, command: str, metric: str, best: Callable[[Iterable[float]], float]
) -> None:
    results = [3.0, 5.0, 1.0, 4.0]
    given = iter(results)
    monkeypatch.setattr("nmt.sweeps.watch.read_result", lambda _: next(given))
    search = ("model.dropout=interval(0,0.3)", "hydra/sweeper=search", f"hydra.sweeper.n_trials={len(results)}")
    assert main([command, "-m", "experiment=demo", *search, f"sweep.metric={metric}"]) == 0
    found = yaml.safe_load(next((here / "outputs").rglob("optimization_results.yaml")).read_text(encoding="utf-8"))
    assert found["best_value"] == best(results)


def test_a_search_that_was_interrupted_goes_on_as_if_it_had_not_been(
    here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["train", "-m", *SEARCH]) == 0
    undisturbed = records(here)
    other = tmp_path_factory.mktemp("other")
    monkeypatch.chdir(other)
    train = import_module("nmt.commands.train")
    calls: list[str] = []

    def interrupted(config: Config) -> None:
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(config.name)
        trained(config)

    monkeypatch.setattr(train, "run", interrupted)
    assert main(["train", "-m", *SEARCH]) == 130
    assert len(records(other)) < 8
    monkeypatch.setattr(train, "run", trained)
    assert main(["train", "-m", *SEARCH]) == 0
    assert records(other) == undisturbed


def test_a_search_without_any_result_says_so(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Config) -> None:
        raise ConfigError("never")

    monkeypatch.setattr(import_module("nmt.commands.train"), "run", fail)
    assert main(["train", "-m", "seed=1,2", "hydra/sweeper=search", "hydra.sweeper.n_trials=2"]) == 2
