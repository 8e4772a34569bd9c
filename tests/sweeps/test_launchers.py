"""Searches that train, with the launchers that run several processes: the same results as in turn."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.integration.toy import call

LAUNCHERS = {
    "joblib": ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2"),
    "submitit": ("hydra/launcher=submitit_local", "hydra.launcher.timeout_min=5"),
}
SEARCH = ("training.steps=4", "training.valid_every=2", "training.save_every=2", "model.dropout=interval(0,0.3)",
          "training.learning_rate=tag(log,interval(0.001,0.01))", "hydra/sweeper=search", "hydra.sweeper.n_trials=4",
          "hydra.sweeper.n_jobs=2")  # fmt: skip
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("optuna") is None, reason="needs the extra search: pip install -e .[search]"),
]


def results(settings: list[str], outputs: Path, *words: str) -> dict[str, float]:
    """Return the result of each run of a search by its values."""
    done = call(["train", "-m", *settings, *SEARCH, f"paths.outputs={outputs}", *words])
    assert done.returncode == 0, done.stderr
    found = [json.loads(file.read_text()) for file in (outputs / "sweeps").rglob("*.json")]
    return {str(each["values"]): each["result"] for each in found}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_launchers_find_the_same_as_a_search_in_turn(launcher: str, settings: list[str], tmp_path: Path) -> None:
    if find_spec("hydra_plugins") is None or find_spec(f"hydra_plugins.hydra_{launcher}_launcher") is None:
        pytest.skip("needs the extra cluster: pip install -e .[cluster]")
    found = results(settings, tmp_path / "parallel", *LAUNCHERS[launcher])
    assert len(found) == 4
    assert found == results(settings, tmp_path / "turn")
    assert found == results(settings, tmp_path / "parallel", *LAUNCHERS[launcher])  # resumed
