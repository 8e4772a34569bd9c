"""What an export says of its files and of the model's training, and what it keeps private."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml

from nmt.compute.machine import Machine
from nmt.config.data import DataConfig
from nmt.config.decoding import DecodingConfig
from nmt.config.registry import load
from nmt.errors import UserError
from nmt.export import ctranslate2_engine, onnx
from nmt.export.record import ExportRecord, card, checksums_of
from nmt.runs.checkpoint import CheckpointRecord
from nmt.storage.files import write_json
from tests.export.models import make_trained
from tests.unit.small_models import make_tokenizer

RECORD = ExportRecord(
    nmt="1",
    target="ctranslate2",
    quantization="int8",
    languages=("en", "de"),
    positions=9,
    checkpoint=CheckpointRecord("averaged", 7),
    origin=CheckpointRecord("best", 5),
    verified="verified",
)
FILES = {"model.bin": "weights", "graphs/encoder.bin": "graph", "config.yaml": "seed: 1\n", "README.md": "A model."}
BACK = {"source_lang": "de", "target_lang": "fr", "train": ["b.de", "b.fr"], "tag": "<fr>"}


@pytest.mark.parametrize(
    "change", [lambda file: file.write_text("something else"), Path.unlink], ids=("changed", "lost")
)
def test_it_is_read_as_it_was_written_unless_another_file_than_the_card_differs(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    record = replace(RECORD, sha256=checksums_of(tmp_path))
    write_json(tmp_path / "export.json", asdict(record))
    (tmp_path / "README.md").write_text("A model with a licence.", encoding="utf-8")
    assert ExportRecord.read(tmp_path) == record
    change(tmp_path / "graphs/encoder.bin")
    with pytest.raises(UserError, match=r"graphs/encoder.bin is missing, damaged or was changed"):
        ExportRecord.read(tmp_path)


@pytest.mark.parametrize(
    ("saved", "used"),
    [
        ("{beam: 3, no_repeat_ngram: 2}", DecodingConfig(beam=3, no_repeat_ngram=2)),
        ("{beam: 3, strategy: mbr, temperature: 0.7, nbest: 9}", DecodingConfig(beam=3)),
    ],
)
def test_an_export_is_loaded_with_the_beam_of_its_run(
    tmp_path: Path, saved: str, used: DecodingConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = SimpleNamespace(Translator=lambda *_, **__: None)
    monkeypatch.setattr(ctranslate2_engine, "import_optional", lambda _: library)
    for name, content in make_tokenizer().files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "config.yaml").write_text(f"decoding: {saved}\n", encoding="utf-8")
    write_json(tmp_path / "export.json", asdict(replace(RECORD, sha256=checksums_of(tmp_path))))
    loaded = ctranslate2_engine.load_export(tmp_path, Machine(torch.device("cpu"), torch.float32))
    assert loaded.engine.config == used


def test_the_page_names_languages_as_browsers_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained, _ = make_trained("web")
    monkeypatch.setattr(onnx, "write", lambda *_: None)  # needs other packages
    data = replace(trained.settings.data, source_lang="de_AT", target_lang="pt_BR")
    onnx.write_page(tmp_path, replace(trained, settings=replace(trained.settings, data=data)))
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'new Intl.Segmenter("de-AT"' in page
    assert 'lang="pt-BR"' in page


@pytest.mark.parametrize(
    ("data", "languages", "datasets", "said"),
    [
        (DataConfig(source_lang="no", target_lang="1e3"), ["no", "1e3"], ["wmt/wmt14"], ["wmt/wmt14 (de-en)"]),
        (DataConfig(source="files", train=["/home/me/secret/train.en", "../secret/b.de"]), ["en", "de"], [], ["b.de"]),
        (
            DataConfig(source="files", train=["a.en", "a.de"], tag="<de>", mixture={"back": BACK}),
            ["en", "de", "fr"],
            [],
            ["<de> A man sleeps.", "Sentences from de to fr begin with `<fr>`", "- de to fr: files: b.de, b.fr\n"],
        ),
    ],
    ids=("hub", "private files", "a mixture"),
)
def test_the_card_describes_each_corpus_without_local_folders(
    data: DataConfig, languages: list[str], datasets: list[str], said: list[str]
) -> None:
    trained, _ = make_trained("ctranslate2")
    settings = replace(trained.settings, data=data)
    text = card(load("export.target", "ctranslate2"), replace(trained, settings=settings), RECORD, [])
    _, front, body = text.split("---\n", 2)
    header: dict[str, Any] = yaml.safe_load(front)
    assert (header["language"], header["datasets"]) == (languages, datasets)
    assert "secret" not in text
    assert [each for each in said if each not in body] == []
