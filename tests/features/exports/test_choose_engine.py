"""engine=auto: when the int8 export of a checkpoint translates instead of the checkpoint."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt.config.saved import to_yaml
from nmt.config.schema import Config, DecodingConfig, PathsConfig
from nmt.decoding.engines import choose_engine
from nmt.features.exports import choose_engine as module
from nmt.features.exports.settings import export_folder
from nmt.runs.checkpoints import Checkpoints
from nmt.storage.files import write_json

CPU = torch.device("cpu")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Make a run whose checkpoint has an int8 export that is faster and loses 0.1 BLEU."""
    config = Config(name="tiny", checkpoint="last", paths=PathsConfig(outputs=str(tmp_path)))
    (tmp_path / "tokenizer.model").write_bytes(b"pieces")
    path = Checkpoints(config.run_folder).save(
        7, weights={"w": torch.ones(2)}, trainer={}, tokenizer_files=[tmp_path / "tokenizer.model"],
        config_text=to_yaml(config), valid={},
    )  # fmt: skip
    checksum = json.loads((path / "meta.json").read_text())["files"]["model.safetensors"]
    write_json(
        tmp_path / "tiny/export/ctranslate2-int8/export.json",
        {
            "target": "ctranslate2", "quantization": "int8", "languages": ["en", "de"], "positions": 99,
            "checkpoint": {"name": "step-00000007", "step": 7, "sha256": checksum},
            "verified": {"quality": {"model_bleu": 30.0, "export_bleu": 29.9}, "speedup": 3.0, "said": "as compared"},
        },
    )  # fmt: skip
    monkeypatch.setattr(module, "find_spec", lambda name: object())
    return config


def change(config: Config, **verified: object) -> None:
    """Change fields of the export's comparison with the model."""
    file = config.run_folder / "export/ctranslate2-int8/export.json"
    content = json.loads(file.read_text())
    content["verified"] |= verified
    write_json(file, content)


def test_a_faster_and_equally_good_export_translates_and_this_is_said(
    config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = choose_engine(config, CPU)
    assert (chosen.engine, export_folder(chosen).name) == ("ctranslate2", "ctranslate2-int8")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "ctranslate2-int8 (as compared); engine=torch for the model" in said


@pytest.mark.parametrize(
    "verified",
    [
        {"quality": {"model_bleu": 30.0, "export_bleu": 29.79}},
        {"quality": None},
        {"quality": {}},
        {"speedup": 0.9},
        {"speedup": None},
    ],
    ids=str,
)
def test_the_model_translates_if_the_export_is_worse_or_slower_or_unmeasured(
    config: Config, verified: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    change(config, **verified)
    assert choose_engine(config, CPU).engine == "torch"
    assert not capsys.readouterr().err


def test_the_model_translates_if_the_export_is_of_other_weights(config: Config) -> None:
    Checkpoints(config.run_folder).save(
        8, weights={"w": torch.zeros(2)}, trainer={}, tokenizer_files=[Path(config.paths.outputs) / "tokenizer.model"],
        config_text=to_yaml(config), valid={},
    )  # fmt: skip
    assert choose_engine(config, CPU).engine == "torch"
    assert choose_engine(replace(config, checkpoint="7"), CPU).engine == "ctranslate2"


@pytest.mark.parametrize(
    "decoding",
    [
        {"strategy": "sample"},
        {"ensemble": ["last"]},
        {"groups": 2},
        {"alignments": True},
        {"noise": 0.5},
        {"epsilon": 0.02},
    ],
    ids=str,
)
def test_the_model_translates_where_the_export_would_search_differently(
    config: Config, decoding: dict[str, object]
) -> None:
    assert choose_engine(replace(config, decoding=DecodingConfig(**decoding)), CPU).engine == "torch"  # type: ignore[arg-type]


def test_the_model_translates_on_a_gpu_and_without_the_package(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_engine(config, torch.device("cuda")).engine == "torch"
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert choose_engine(config, CPU).engine == "torch"


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_an_engine_that_the_user_names_stays(config: Config, engine: str) -> None:
    named = replace(config, engine=engine)
    assert choose_engine(named, CPU) is named
