"""Exports for Marian come back as runs that translate the same; what cannot be imported is refused in one line."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.cli import main
from nmt.commands import COMMANDS
from nmt.config.choices import CHOICES
from nmt.config.saved import from_yaml, to_yaml
from nmt.config.schema import Config
from nmt.marian.files import NPZ, SETTINGS, write_npz
from nmt.marian.vocabularies import write_vocabularies
from nmt.marian.weights import to_marian
from nmt.runs.checkpoints import load, resolve
from nmt.text.special import BOS
from nmt.text.tokenizer import Tokenizer
from tests.unit.small_models import LINES, make_model, make_tokenizer
from tests.unit.tiny_run import write_tiny_run

MARIANS = "marian" in CHOICES["model.positions"]


class RunsCode:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.folder),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in Marian's format, with the settings of its run."""
    tokenizer = make_tokenizer()
    model = make_model(tokenizer)
    written = tmp_path / "marian"
    written.mkdir()
    write_npz(written / NPZ, to_marian(model.config, model.state_dict()), "")
    write_vocabularies(written, tokenizer)
    (written / "config.yaml").write_text(to_yaml(Config(name="own", model=model.config)), encoding="utf-8")
    return written


def imported(source: Path, tmp_path: Path) -> int:
    return main(["import", f"source={source}", "name=again", f"paths.outputs={tmp_path / 'outputs'}"])


def test_the_user_may_name_other_languages(folder: Path, tmp_path: Path) -> None:
    words = [f"source={folder}", "name=again", f"paths.outputs={tmp_path}", "importing.languages=[fr,es]"]
    assert main(["import", *words]) == 0
    data = from_yaml(load(resolve(tmp_path / "again", "averaged")).config_text).data
    assert (data.source_lang, data.target_lang) == ("fr", "es")


def test_weights_and_vocabulary_come_back_as_they_were(folder: Path, tmp_path: Path) -> None:
    assert imported(folder, tmp_path) == 0
    found = load(resolve(tmp_path / "outputs" / "again", "averaged"))
    expected = make_model(make_tokenizer()).state_dict()
    assert found.weights.keys() == expected.keys()
    assert all(torch.equal(found.weights[name], weight) for name, weight in expected.items())
    assert Tokenizer.load(found.path).contents == make_tokenizer().contents


@pytest.mark.skipif(not (MARIANS and "export" in COMMANDS), reason="needs exports and Marian's positions")
def test_a_run_that_is_exported_and_imported_translates_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_model(make_tokenizer(), positions="marian")
    with torch.no_grad():
        model.state_dict()["vectors.shared"][BOS] = 0
    write_tiny_run(tmp_path / "outputs" / "own", model)
    text = tmp_path / "text.en"
    text.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    words = [
        f"paths.outputs={tmp_path / 'outputs'}", f"paths.data={tmp_path / 'data'}", f"input={text}",
        "decoding.extra_length=4", "runtime.device=cpu", "runtime.precision=fp32", "runtime.threads=1",
    ]  # fmt: skip
    assert main(["export", "name=own", "export.target=marian", *words]) == 0
    assert imported(tmp_path / "outputs" / "own" / "export" / "marian-float32", tmp_path) == 0
    capsys.readouterr()
    found = []
    for name in ("own", "again"):
        assert main(["translate", f"name={name}", *words]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1]
    assert len(found[0].splitlines()) == len(LINES)


def _write_object(folder: Path) -> None:
    np.savez(folder / NPZ, Wemb=np.array([RunsCode(folder / "ran")], dtype=object))


def _drop(folder: Path) -> None:
    with np.load(folder / NPZ) as found:
        kept = {name: found[name] for name in found.files if name not in (SETTINGS, "encoder_l1_self_Wk")}
    write_npz(folder / NPZ, kept, "")


def _widen(folder: Path) -> None:
    file = folder / "config.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("d_ff: 48", "d_ff: 64"), encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "config.yaml").unlink(), "is no export of this project"),
        (lambda folder: (folder / NPZ).write_bytes(b"PK\3\4 no archive"), "is damaged"),
        (lambda folder: (folder / NPZ).write_bytes((folder / NPZ).read_bytes()[:-999]), "is damaged"),
        (lambda folder: (folder / "vocab.spm").unlink(), "Copy all files of the model"),
        (_write_object, "is damaged"),
        (_drop, "does not hold the model of config.yaml"),
        (_widen, "does not hold the encoder.0.feed_forward.inner.weight that config.yaml describes"),
    ],
)
def test_damaged_files_are_refused_in_one_line(
    folder: Path, tmp_path: Path, change: Callable[[Path], object], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(folder)
    assert imported(folder, tmp_path) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (folder / "ran").exists()
