"""A search with Optuna, in turn and with the launchers: it is resumed, and failed runs do not end it."""

import json
import signal
from collections.abc import Iterator
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
SINGLE = ("model.dropout=0.2", "training.learning_rate=0.005")
"""Values that the last words for these settings replace."""
SEARCH = ("train", "-m", "experiment=demo", *SINGLE, "model.dropout=interval(0,0.3)", "hydra/sweeper=search",
          "training.learning_rate=tag(log,interval(0.001,0.01))", "hydra.sweeper.n_trials=8")  # fmt: skip


def trained(config: Config) -> None:
    """Stand in for training: the loss depends on the settings alone; a finished run is not trained again."""
    metrics = config.run_folder / "metrics.jsonl"
    if metrics.exists():
        return
    metrics.parent.mkdir(parents=True)
    loss = 2 + config.model.dropout + abs(config.training.learning_rate - 0.004) * 100
    events = [{"event": "valid", "step": step, "time": 1, "loss": loss + 9 / step} for step in (1, 9, 3)]
    metrics.write_text("".join(f"{json.dumps(each)}\n" for each in events))


def losses(folder: Path) -> dict[str, float]:
    """Return the lowest loss of each run."""
    found = {file.parent.name: file.read_text().splitlines() for file in folder.rglob("metrics.jsonl")}
    return {
        name: min(each["loss"] for each in map(json.loads, lines) if each["event"] == "valid")
        for name, lines in found.items()
    }


def best(folder: Path) -> Any:
    return yaml.safe_load((folder / "outputs/sweeps/demo/optimization_results.yaml").read_text())["best_value"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(import_module("nmt.commands.train"), "run", trained)
    before = signal.getsignal(signal.SIGINT)
    yield tmp_path
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_search_goes_on_as_if_it_had_not_been(
    here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([*SEARCH]) == 0
    undisturbed = losses(here)
    assert len(undisturbed) == 8
    assert best(here) == min(undisturbed.values())
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
    assert main([*SEARCH]) == 130
    assert len(losses(other)) == 3
    monkeypatch.setattr(train, "run", trained)
    assert main([*SEARCH]) == 0
    assert losses(other) == undisturbed


def test_failed_runs_do_not_end_a_search_unless_all_fail(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(config: Config) -> None:
        if config.model.dropout > 0.1:
            raise ConfigError("no room")
        trained(config)

    monkeypatch.setattr(import_module("nmt.commands.train"), "run", run)
    assert main([*SEARCH]) == 0
    assert 1 < len(losses(here)) < 8
    assert main(["train", "-m", "model.dropout=0.2,0.3", "hydra/sweeper=search", "hydra.sweeper.n_trials=2"]) == 2
