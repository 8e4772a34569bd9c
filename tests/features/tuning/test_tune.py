"""`nmt tune` measures on this machine, and training takes what it wrote."""

from pathlib import Path

import pytest
import yaml

from nmt.measuring.search import MIN_GAIN
from tests.integration.toy import call, refuse

pytestmark = pytest.mark.slow

CHOICES = ["tune.choices=[runtime.parallel,runtime.precision]", "tune.seconds=6"]


def open_settings(settings: list[str], outputs: Path) -> list[str]:
    """Leave the threads and the precision open, and with them all choices."""
    chosen = ("runtime.threads", "runtime.precision")
    return [*(word for word in settings if not word.startswith(chosen)), f"paths.outputs={outputs}"]


@pytest.fixture
def words(settings: list[str], tmp_path: Path) -> list[str]:
    return open_settings(settings, tmp_path)


def test_training_takes_what_tuning_has_written(words: list[str], tmp_path: Path) -> None:
    tuned = call(["tune", *words, *CHOICES])
    assert tuned.returncode == 0, tuned.stderr
    assert "tokens/s" in tuned.stdout
    (file,) = (tmp_path / "tuned").glob("*.yaml")
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    default, *candidates = content["table"]
    assert default["setting"] == "default"
    assert default["tokens_per_second"] > 0
    assert "runtime.precision" in [row["setting"] for row in candidates]  # on any number of cores
    fast = {row["setting"]: row["candidate"] for row in candidates if (row["ratio"] or 0) >= MIN_GAIN}
    assert content["settings"].items() <= fast.items()
    assert bool(content["settings"]) == bool(fast)
    trained = call(["train", *words, "training.steps=10"])
    assert trained.returncode == 0, trained.stderr
    assert f"tuned settings of {file}" in trained.stdout
    (tmp_path / "toy" / "tuned.yaml").write_text("damaged", encoding="utf-8")
    resumed = call(["train", *words, "training.steps=20"])
    assert resumed.returncode == 0, resumed.stderr
    assert "going on from step 10" in resumed.stdout
    assert "cannot be used as tuned settings" in resumed.stderr


def test_required_tuning_ends_with_one_line_if_there_is_none(words: list[str]) -> None:
    done = call(["train", *words, "runtime=tuned", "runtime.device=cpu"])
    assert done.returncode == 2
    assert "run `nmt tune` with the same settings first" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "more", [["tune.choices=[runtime.parallel]", "runtime.parallel=1"], ["tune.choices=[runtime.attention]"]], ids=str
)
def test_nothing_left_open_is_refused_in_one_line(words: list[str], more: list[str]) -> None:
    (line,) = refuse(["tune", *words, "runtime.device=cpu", *more]).splitlines()
    assert f"leave nothing of {more[0]} open that is measured on this cpu" in line
    assert "name other choices" in line
