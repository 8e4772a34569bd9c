"""engine=auto: when the int8 export of a checkpoint translates instead of the checkpoint."""

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt.compute.machine import Machine
from nmt.config.keys import with_values
from nmt.config.saved import to_yaml
from nmt.config.schema import Config, DecodingConfig, PathsConfig
from nmt.decoding.engines import choose_engine
from nmt.errors import UserError
from nmt.features.exports import choose_engine as module
from nmt.features.exports import first_use
from nmt.features.exports.record import read_export_record
from nmt.features.exports.settings import export_folder
from nmt.runs.checkpoint_files import read_meta
from nmt.runs.checkpoints import Checkpoints, resolve
from nmt.storage.files import checksum, write_json, write_text

CPU = Machine(torch.device("cpu"), torch.float32)


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Make a run whose checkpoint has an int8 export that is faster and loses 0.1 BLEU."""
    config = Config(
        name="tiny", checkpoint="last", paths=PathsConfig(data=str(tmp_path / "data"), outputs=str(tmp_path))
    )
    path = Checkpoints(config.run_folder).save(
        7, weights={"w": torch.ones(2)}, trainer={}, tokenizer_files={"tokenizer.model": b"pieces"},
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
    monkeypatch.setattr(first_use, "has_operations", lambda config: False)
    return with_values(config, {"export.on_first_use": False})


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
        8, weights={"w": torch.zeros(2)}, trainer={}, tokenizer_files={"tokenizer.model": b"pieces"},
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
    ],
    ids=str,
)
def test_the_model_translates_where_the_export_would_search_differently(
    config: Config, decoding: dict[str, object]
) -> None:
    assert choose_engine(replace(config, decoding=DecodingConfig(**decoding)), CPU).engine == "torch"  # type: ignore[arg-type]


def test_the_model_translates_on_a_gpu_and_without_the_package(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_engine(config, CPU._replace(device=torch.device("cuda"))).engine == "torch"
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert choose_engine(config, CPU).engine == "torch"


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_an_engine_that_the_user_names_stays(config: Config, engine: str) -> None:
    named = replace(config, engine=engine)
    assert choose_engine(named, CPU) is named


class FakeExport:
    """Writes the record of an export that loses as much BLEU as `loss` says, or refuses the model."""

    def __init__(self) -> None:
        self.loss, self.refusal, self.inputs = 0.1, "", list[str]()

    def __call__(self, config: Config, precision: torch.dtype) -> None:
        self.inputs.append(config.input)
        if self.refusal:
            raise UserError(self.refusal)
        path, model = resolve(config.run_folder, config.checkpoint), export_folder(config) / "model.bin"
        write_text(model, "weights")
        quality = {"model_bleu": 30.0, "export_bleu": 30.0 - self.loss}
        record = {
            "target": "ctranslate2", "quantization": "int8", "languages": ["en", "de"], "positions": 99,
            "checkpoint": {"name": path.name, "step": 7, "sha256": read_meta(path).files["model.safetensors"]},
            "verified": {"quality": quality, "speedup": 3.0, "said": "as compared"},
            "sha256": {model.name: checksum(model)},
        }  # fmt: skip
        write_json(export_folder(config) / "export.json", record)


@pytest.fixture
def export() -> FakeExport:
    """Return the stand-in for the export."""
    return FakeExport()


@pytest.fixture
def unexported(config: Config, export: FakeExport, monkeypatch: pytest.MonkeyPatch) -> Config:
    """Let the first use make an export; the run has none, and a development set."""
    shutil.rmtree(config.run_folder / "export")
    config.data_folder.mkdir(parents=True)
    for language in ("en", "de"):
        (config.data_folder / f"valid.{language}").write_text("a\n")
    monkeypatch.setattr(first_use, "export_checkpoint", export)
    return with_values(config, {"export.on_first_use": True})


def test_the_first_use_makes_an_export_once_and_says_so(
    unexported: Config, export: FakeExport, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = replace(unexported, input="text of the user")
    for _ in range(2):
        assert export_folder(choose_engine(asked, CPU)).name == "first-use-int8"
    assert export.inputs == ["-"]  # compared on the development set, not on the text of the user
    said = capsys.readouterr().err
    assert said.count("making an int8 export once") == 1


@pytest.mark.parametrize("name", ["model.bin", "export.json"])
def test_a_damaged_export_of_the_first_use_is_made_again(unexported: Config, export: FakeExport, name: str) -> None:
    folder = export_folder(choose_engine(unexported, CPU))
    (folder / name).write_bytes(b"damaged")
    for _ in range(2):
        chosen = choose_engine(unexported, CPU)
        assert export_folder(chosen) == folder
        read_export_record(folder).verify(folder)
    assert len(export.inputs) == 2
    (folder / name).write_bytes(b"damaged")
    assert choose_engine(with_values(unexported, {"export.on_first_use": False}), CPU).engine == "torch"


def test_an_export_of_the_first_use_is_not_used_without_permission_and_one_of_the_user_is(
    unexported: Config, export: FakeExport
) -> None:
    assert choose_engine(unexported, CPU).engine == "ctranslate2"
    without = with_values(unexported, {"export.on_first_use": False})
    assert choose_engine(without, CPU).engine == "torch"
    export(with_values(without, module.INT8), torch.float32)
    assert export_folder(choose_engine(without, CPU)).name == "ctranslate2-int8"


def test_a_damaged_export_of_the_user_is_an_error(config: Config) -> None:
    (config.run_folder / "export/ctranslate2-int8/export.json").write_bytes(b"damaged")
    with pytest.raises(UserError, match="cannot be read as JSON"):
        choose_engine(config, CPU)


def test_of_two_processes_one_makes_the_export_and_the_other_waits_for_it(
    unexported: Config, export: FakeExport, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(config: Config, precision: torch.dtype) -> None:
        begun.set()
        assert go.wait(20)
        export(config, precision)

    def choose() -> None:
        chosen.append(export_folder(choose_engine(unexported, CPU)).name)

    monkeypatch.setattr(first_use, "export_checkpoint", slow)
    chosen: list[str] = []
    first, second = threading.Thread(target=choose), threading.Thread(target=choose)
    first.start()
    assert begun.wait(20)
    second.start()
    said = ""
    while "waiting for another process" not in said and second.is_alive():
        said += capsys.readouterr().err
    go.set()
    for each in (first, second):
        each.join(20)
    assert chosen == ["first-use-int8"] * 2
    assert len(export.inputs) == 1


def test_a_folder_that_may_only_be_read_does_not_keep_anybody_from_translating(
    unexported: Config, export: FakeExport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise UserError("cannot write")

    monkeypatch.setattr(first_use, "exclusive_folder", refuse)
    assert choose_engine(unexported, CPU).engine == "ctranslate2"
    assert len(export.inputs) == 1


def test_an_export_of_the_first_use_that_loses_too_much_is_kept_as_proof_and_not_used(
    unexported: Config, export: FakeExport, capsys: pytest.CaptureFixture[str]
) -> None:
    export.loss = 0.3
    assert [choose_engine(unexported, CPU).engine for _ in range(2)] == ["torch", "torch"]
    assert capsys.readouterr().err.count("translating with the model, which is better or as fast (as compared)") == 1
    assert len(export.inputs) == 1


def test_a_refused_export_is_not_tried_again_until_the_weights_change(
    unexported: Config, export: FakeExport, capsys: pytest.CaptureFixture[str]
) -> None:
    export.refusal = "this model has no export"
    assert [choose_engine(unexported, CPU).engine for _ in range(2)] == ["torch", "torch"]
    assert capsys.readouterr().err.count("translating with the model: this model has no export") == 1
    assert len(export.inputs) == 1
    Checkpoints(unexported.run_folder).save(
        8, weights={"w": torch.zeros(2)}, trainer={},
        tokenizer_files={"tokenizer.model": b"pieces"}, config_text=to_yaml(unexported), valid={},
    )  # fmt: skip
    export.refusal = ""
    assert choose_engine(unexported, CPU).engine == "ctranslate2"


def test_the_export_of_the_user_comes_before_that_of_the_first_use(unexported: Config, export: FakeExport) -> None:
    choose_engine(unexported, CPU)
    export(with_values(unexported, module.INT8), torch.float32)
    assert export_folder(choose_engine(unexported, CPU)).name == "ctranslate2-int8"


@pytest.mark.parametrize("changed", [{"export.on_first_use": False}, {"decoding.alignments": True}], ids=str)
def test_no_export_is_made_unasked_for(unexported: Config, export: FakeExport, changed: dict[str, object]) -> None:
    assert choose_engine(with_values(unexported, changed), CPU).engine == "torch"
    assert not export.inputs


def test_no_export_is_made_without_references(unexported: Config, export: FakeExport) -> None:
    (unexported.data_folder / "valid.de").unlink()
    assert choose_engine(unexported, CPU).engine == "torch"
    assert not export.inputs
