"""Packages for Argos Translate, compared with our own model, and used by the client itself if there is one."""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from nmt.config.saved import to_yaml
from nmt.config.schema import Config, DecodingConfig
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import ConfigError, UserError
from nmt.features.exports.argos import CLIENT_SEARCH, ArgosExporter, translate_as_client
from nmt.features.exports.exporter import TrainedModel
from nmt.features.exports.settings import ExportConfig
from nmt.runs.checkpoints import Checkpoints, load
from tests.features.exports.clients import argos, needs_argos
from tests.unit.small_models import LINES, log_probabilities, make_model, make_tokenizer

pytest.importorskip("ctranslate2", reason="needs the extra argos")
pytest.importorskip("onnx", reason="needs the extra argos")
CPU = torch.device("cpu")
ROOT = "translate-en_de-1_0"


def trained(folder: Path, joint: bool = True, quantization: str = "float32", tags: Sequence[str] = ()) -> TrainedModel:
    tokenizer = make_tokenizer(joint, tags)
    model = make_model(tokenizer, tie_embeddings=joint, norm_placement="pre", positions="rotary")
    settings = replace(Config(), name="small", model=model.config)
    Checkpoints(folder).save(
        8, weights=model.state_dict(), trainer={}, config_text=to_yaml(settings), valid={},
        tokenizer_files=tokenizer.files,
    )  # fmt: skip
    checkpoint = load(folder / "checkpoints" / "step-00000008")
    return TrainedModel(checkpoint, settings, tokenizer, DecodingConfig(beam=3, extra_length=12), quantization)


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """Write a package into a folder."""
    (tmp_path / "pieces").mkdir()
    (tmp_path / "export").mkdir()
    ArgosExporter().write(tmp_path / "export", trained(tmp_path))
    return tmp_path / "export"


def test_a_package_has_the_files_that_the_client_reads(exported: Path) -> None:
    (file,) = exported.iterdir()
    assert file.name == f"{ROOT}.argosmodel"
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
        metadata = json.loads(archive.read(f"{ROOT}/metadata.json"))
    expected = {"metadata.json", "sentencepiece.model", "README.md", "minisbd/splitter.onnx", "model/model.bin"}
    assert {f"{ROOT}/{name}" for name in expected} <= names
    assert {name.partition("/")[0] for name in names} == {ROOT}
    assert metadata == {
        "package_version": "1.0", "argos_version": "1.11", "from_code": "en", "from_name": "English",
        "to_code": "de", "to_name": "German", "target_prefix": "",
    }  # fmt: skip


def test_languages_have_the_names_that_the_server_gives_them(tmp_path: Path) -> None:
    for folder in ("pieces", "export"):
        (tmp_path / folder).mkdir()
    usual = trained(tmp_path)
    data = replace(usual.settings.data, source_lang="sk", target_lang="tlh")
    ArgosExporter().write(tmp_path / "export", replace(usual, settings=replace(usual.settings, data=data)))
    (file,) = (tmp_path / "export").iterdir()
    with zipfile.ZipFile(file) as archive:
        metadata = json.loads(archive.read(f"{file.stem}/metadata.json"))
    assert (metadata["from_name"], metadata["to_name"]) == ("Slovak", "tlh")


def test_a_package_gives_the_same_scores_and_translations(exported: Path, tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    ours = make_model(tokenizer, norm_placement="pre", positions="rotary")
    native = TorchEngine([ours], tokenizer, DecodingConfig(beam=3, extra_length=12), CPU)
    theirs = ArgosExporter().open(exported, native, LINES)
    assert [each.text for each in theirs.translate(LINES)] == [each.text for each in native.translate(LINES)]
    for source, target, found in zip(LINES, LINES[::-1], theirs.score(LINES, LINES[::-1]), strict=True):
        (ids,), (labels,) = tokenizer.encode_source([source]), tokenizer.encode_target([target])
        expected = log_probabilities(ours, ids, labels).sum().item()
        assert found.log_probability == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_two_sentencepiece_models_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "pieces").mkdir()
    model = trained(tmp_path, joint=False)
    (tmp_path / "export").mkdir()
    with pytest.raises(UserError, match=r"^export.target=argos cannot express tokenizer.joint=false, [^\n]*$"):
        ArgosExporter().write(tmp_path / "export", model)
    assert not list((tmp_path / "export").iterdir())


def test_tags_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pieces").mkdir()
    model = trained(tmp_path, tags=["<de>"])
    (tmp_path / "export").mkdir()
    with pytest.raises(UserError, match=r"^export.target=argos cannot express tags before sentences, [^\n]*$"):
        ArgosExporter().write(tmp_path / "export", model)
    assert not list((tmp_path / "export").iterdir())


def test_only_formats_with_int8_accept_it() -> None:
    assert ExportConfig(target="argos", quantization="int8").quantization == "int8"
    with pytest.raises(ConfigError, match=r"needs export.target=argos or ctranslate2 or onnx or web$"):
        ExportConfig(target="huggingface", quantization="int8")


def test_the_card_states_what_the_client_decides() -> None:
    note = ArgosExporter().search_note(DecodingConfig())
    for fact in (f"length^{CLIENT_SEARCH['length_penalty']}", "unknown word", "`_` into a space", "sentences"):
        assert fact in note


@pytest.mark.slow
@needs_argos
def test_the_client_translates_offline_as_we_say_it_does(exported: Path, tmp_path: Path) -> None:
    found = argos(exported / f"{ROOT}.argosmodel", ("en", "de"), LINES, tmp_path)["found"]
    assert found == translate_as_client(exported, LINES)
