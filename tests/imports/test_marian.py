"""Imported Marian models translate as transformers does; what cannot be imported is refused in one line."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from nmt import cli
from nmt.config.decoding import DecodingConfig
from nmt.config.keys import with_values
from nmt.config.saved import from_yaml
from nmt.config.tree import Config
from nmt.decoding.torch_engine import TorchEngine, load_model
from nmt.errors import UserError
from nmt.export import huggingface
from nmt.imports import command
from nmt.runs.checkpoint import Checkpoint, CheckpointRecord, load
from nmt.runs.checkpoints import resolve
from nmt.text.tokenizer import Tokenizer
from tests.export.models import make_trained
from tests.imports.marian import generate, lines, make

LONGEST = 60
CPU = torch.device("cpu")


def settings(tmp_path: Path, source: Path) -> Config:
    return with_values(Config(), {"name": "it", "input": str(source), "paths.outputs": str(tmp_path / "runs")})


def imported(config: Config) -> Checkpoint:
    command.run(config)
    return load(resolve(config.run_folder, "averaged"))


def engine(checkpoint: Checkpoint, beam: int) -> TorchEngine:
    model, tokenizer = load_model(checkpoint, from_yaml(checkpoint.config_text).model, CPU)
    found = TorchEngine([model], tokenizer, DecodingConfig(beam=beam, alpha=0.0, extra_length=LONGEST), CPU)
    found.max_target_tokens = LONGEST
    return found


@pytest.fixture
def marian(tmp_path: Path) -> Path:
    folder = tmp_path / "opus"
    folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("kind", "shared", "changes"),
    [
        ("unigram", True, {}),
        ("bpe", True, {"activation_function": "relu"}),
        ("unigram", False, {"activation_function": "gelu", "decoder_layers": 1}),
        ("bpe", False, {"tie_word_embeddings": True}),
    ],
    ids=str,
)
def test_translations_are_those_of_transformers(
    tmp_path: Path, marian: Path, kind: str, shared: bool, changes: dict[str, Any]
) -> None:
    make(marian, kind, shared=shared, **changes)
    run = imported(settings(tmp_path, marian))
    assert from_yaml(run.config_text).model.tie_embeddings == shared
    sentences = lines(100)
    for beam in (1, 4):
        ours = [each.text.strip() for each in engine(run, beam).translate(sentences)]
        assert ours == generate(marian, sentences, beam, LONGEST)
        assert len({*ours}) > 10


def test_a_language_tag_is_one_piece(tmp_path: Path, marian: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the extra huggingface")
    make(marian, "unigram", shared=True)
    content = json.loads((marian / "vocab.json").read_text(encoding="utf-8"))
    renamed = {">>deu<<" if index == 5 else text: index for text, index in content.items()}
    (marian / "vocab.json").write_text(json.dumps(renamed), encoding="utf-8")
    run = imported(settings(tmp_path, marian))
    sentences = [f">>deu<< {line}" for line in lines(20)]
    assert 5 in transformers.MarianTokenizer.from_pretrained(marian)(sentences[0]).input_ids
    tokenizer = Tokenizer.load(run.path)
    assert tokenizer.source_pieces(tokenizer.encode_source(sentences)[0])[0] == "▁>>deu<<"
    ours = [each.text.strip() for each in engine(run, 2).translate(sentences)]
    assert ours == generate(marian, sentences, 2, LONGEST)


def export(folder: Path) -> dict[str, torch.Tensor]:
    """Write a model with random weights in Hugging Face's format; return our weights."""
    trained, ours = make_trained("huggingface")
    huggingface.write(folder, trained)
    return ours.state_dict()


def test_the_command_writes_a_run_with_records(
    tmp_path: Path, marian: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(marian)
    words = ["import", f"input={marian}", f"paths.outputs={tmp_path}/runs"]
    assert cli.main(words) == 0
    run_folder = tmp_path / "runs" / "opus"  # it has the name of the folder
    assert f"{run_folder}: en to de, " in capsys.readouterr().out
    origin = json.loads((run_folder / "environment.json").read_text(encoding="utf-8"))["origin"]
    assert (origin["name"], origin["path"], origin["step"]) == ("opus", str(marian), 0)
    for name in ("last", "averaged"):
        found = load(resolve(run_folder, name)).meta.origin
        assert found == CheckpointRecord("opus", 0, sha256=origin["sha256"], path=str(marian))
    assert from_yaml((run_folder / "config.yaml").read_text(encoding="utf-8")).name == "opus"
    assert cli.main(words) == 2
    assert "has checkpoints already: give the import another name=" in capsys.readouterr().err


def test_an_import_is_complete_at_an_address(tmp_path: Path, marian: Path) -> None:
    export(marian)
    assert cli.main(["import", f"input={marian}", f"paths.outputs=file://{tmp_path}/runs"]) == 0
    load(tmp_path / "runs/opus/checkpoints/averaged")


def test_languages_are_those_of_the_files_or_the_settings(tmp_path: Path, marian: Path) -> None:
    export(marian)
    for name, expected in (("one", ("en", "de")), ("other", ("fr", "es"))):
        named = {"name": name, "data.source_lang": "fr", "data.target_lang": "es"}
        data = from_yaml(imported(with_values(settings(tmp_path, marian), named)).config_text).data
        assert (data.source_lang, data.target_lang) == expected
        (marian / "tokenizer_config.json").unlink(missing_ok=True)


def change_config(folder: Path, **changes: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def to_pickle(folder: Path, content: object) -> None:
    (folder / "model.safetensors").unlink()
    with (folder / "pytorch_model.bin").open("wb") as file:
        pickle.dump(content, file)


class Attack:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("attacked"),)  # type: ignore[return-value]


PROMISES = "the weights are not those that config.json and the vocabulary promise"
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no weights": (lambda it: (it / "model.safetensors").unlink(), "has neither model.safetensors nor pytorch_model"),
    "pickle": (lambda it: to_pickle(it, Attack()), "could run any code, so it is refused: fetch a model.safe"),
    "cut weights": (lambda it: (it / "model.safetensors").write_bytes(b"12345678"), "is damaged"),
    "no tokenizer": (lambda it: (it / "source.spm").unlink(), "source.spm is missing: fetch all files"),
    "damaged tokenizer": (lambda it: (it / "target.spm").write_bytes(b"\xff" * 9), "target.spm is damaged or not"),
    "no vocabulary": (lambda it: (it / "vocab.json").unlink(), "vocab.json is missing"),
    "short vocabulary": (lambda it: (it / "vocab.json").write_text('{"a": 0}'), "must name each of the 60 rows"),
    "other model": (lambda it: change_config(it, model_type="t5"), "has model_type=t5, which .* only marian"),
    "heads": (lambda it: change_config(it, decoder_attention_heads=2), "has decoder_attention_heads=2"),
    "positions": (lambda it: change_config(it, static_position_embeddings=False), "static_position_embeddings=F"),
    "width": (lambda it: change_config(it, d_model=64), PROMISES),
    "no memory": (lambda it: change_config(it, d_model=2 * 10**12, encoder_ffn_dim=10**15, decoder_ffn_dim=10**15),
                  PROMISES),
    "start": (lambda it: change_config(it, decoder_start_token_id=600), "decoder_start_token_id=600 is no row"),
    "missing layer": (lambda it: change_config(it, encoder_layers=3), rf"{PROMISES} .'model.encoder.layers.2"),
    "layer too many": (lambda it: change_config(it, encoder_layers=1), "no place for, such as model.encoder.layers.1"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_cannot_be_imported_is_refused_in_one_line(tmp_path: Path, marian: Path, damage: str) -> None:
    change, words = DAMAGES[damage]
    export(marian)
    change(marian)
    with pytest.raises(UserError, match=words) as error:
        command.run(settings(tmp_path, marian))
    assert "\n" not in str(error.value)
    assert not Path("attacked").exists()
    assert not (tmp_path / "runs").exists()


def test_a_pickle_of_tensors_is_read(tmp_path: Path, marian: Path) -> None:
    weights = export(marian)
    stored = load_file(marian / "model.safetensors")
    (marian / "model.safetensors").unlink()
    torch.save(stored, marian / "pytorch_model.bin")
    found = imported(settings(tmp_path, marian)).weights
    assert all(torch.equal(found[name], weights[name]) for name in weights)
