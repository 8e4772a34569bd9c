"""A run with one checkpoint and prepared test data, which no training has made."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.config.compose import compose
from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.decoding.load import load
from nmt.runs.layout import RunLayout
from nmt.storage.files import write_text
from tests.integration.toy import write_lines
from tests.unit.small_models import make_model, make_tokenizer
from tests.unit.tiny_run import write_tiny_run

SOURCES = ["the small cat sees a dog", "", "a dog", "it is a very small dog", "cats see dogs and a cat"]
REFERENCES = ["die Katze sieht einen Hund", "", "ein Hund", "es ist ein sehr kleiner Hund", "Katzen sehen Hunde"]
LINES = [line for line in SOURCES if line]
Run = tuple[Config, list[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Make a run with one checkpoint and prepared test data; return its settings and the overrides that name it."""
    small: dict[str, Any] = {
        "layers": 1,
        "d_model": 16,
        "d_ff": 16,
        "heads": 2,
        "positions": "learned",
        "max_positions": 257,
    }
    write_tiny_run(tmp_path / "outputs" / "tiny", make_model(make_tokenizer(), **small))
    overrides = [
        f"paths.data={tmp_path}/data", f"paths.outputs={tmp_path}/outputs", "name=tiny", "data.corpus=tiny",
        "checkpoint=last", "decoding.extra_length=4", "runtime.device=cpu", "runtime.precision=fp32",
        "runtime.threads=1",
    ]  # fmt: skip
    config = compose(overrides)
    write_text(RunLayout(config.run_folder).settings, to_yaml(config))
    write_split(config, "test", SOURCES, REFERENCES)
    return config, overrides


def write_split(config: Config, split: str, sources: list[str], references: list[str]) -> None:
    for language, lines in (("en", sources), ("de", references)):
        write_lines(config.data_folder / f"{split}.{language}", lines)


def engine_of(config: Config, **search: Any) -> Any:
    """Return the engine of the run."""
    engine = load(config.run_folder, device="cpu", precision="fp32").engine
    return engine.with_search(replace(config.decoding, **search), 1)


def weights_path(config: Config) -> Path:
    return RunLayout(config.run_folder).averaged.resolve() / "model.safetensors"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return Path(write_lines(tmp_path / "text.en", LINES))
