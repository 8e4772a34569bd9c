"""`nmt export` and what is done with its results."""

import json
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch

from nmt.cli import main
from nmt.config.tree import Config
from nmt.decoding.torch_engine import TorchEngine
from nmt.export import command
from nmt.export.ctranslate2_engine import CTranslate2Engine
from nmt.model.interface import TranslationModel
from tests.export.models import target
from tests.unit import small_models as models
from tests.unit.commands.conftest import LINES, REFERENCES, SOURCES, Run, run, text, write_split
from tests.unit.tiny_run import write_tiny_run

__all__ = ["run", "text"]  # fixtures
needs_ctranslate2 = pytest.mark.skipif(not find_spec("ctranslate2"), reason="needs the extra ctranslate2")


def give_model(config: Config, **options: Any) -> TranslationModel:
    """Save a checkpoint of a model that ends its translations, as trained ones do; return the model."""
    ours = models.make_model(models.make_tokenizer(), **options)
    write_tiny_run(config.run_folder, ours, max_pieces=12)
    return ours


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


@needs_ctranslate2
def test_translate_and_eval_accept_an_export(
    run: Run, text: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config, overrides = run
    greedy = [*overrides, "decoding.beam=1"]
    monkeypatch.setenv("HOME", str(text.parent))
    assert main(["export", *greedy, f'input="~/{text.name}"']) == 0
    assert " MB, 4 of 4 translations identical (100.0%)" in printed(capsys)
    outputs, reports = [], []
    for engine, folder in (("torch", "eval/beam_1"), ("ctranslate2", "eval/ctranslate2-float32/beam_1")):
        assert main(["translate", *greedy, f"input={text}", f"engine={engine}"]) == 0
        outputs.append(printed(capsys))
        assert main(["eval", *greedy, f"engine={engine}"]) == 0
        printed(capsys)
        reports.append(json.loads((config.run_folder / folder / "test.json").read_text(encoding="utf-8")))
    assert outputs[0] == outputs[1]
    assert [report["engine"] for report in reports] == ["torch", "ctranslate2"]
    assert reports[1]["nll"] == pytest.approx(reports[0]["nll"], rel=1e-4)
    assert reports[1]["bleu"] == reports[0]["bleu"]
    assert reports[1]["checkpoint"]["sha256"] == reports[0]["checkpoint"]["sha256"]


@needs_ctranslate2
def test_the_card_states_the_scored_search_and_the_effect_of_rounding(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, overrides = run
    write_split(config, "valid", SOURCES, REFERENCES)
    ours = give_model(config)
    words = [*overrides, "decoding.beam=3", "decoding.alpha=1.5", "export.quantization=int8"]
    assert main(["eval", *words]) == 0
    assert main(["export", *words]) == 0
    folder = config.run_folder / "export" / "ctranslate2-int8"
    line = printed(capsys).splitlines()[-1]
    found = re.fullmatch(
        rf"{folder}: \S+ MB, \d of 4 translations identical \(.*%\), log-probabilities of word pieces differ by \S+; "
        r"BLEU (\S+) instead of (\S+) \(.*\)",
        line,
    )
    assert found, line
    decoding = replace(config.decoding, beam=3, alpha=1.5)
    native = TorchEngine([ours], models.make_tokenizer(), decoding, torch.device("cpu"))
    translations = [each.text for each in native.translate(LINES)]
    references = [reference for source, reference in zip(SOURCES, REFERENCES, strict=True) if source]
    assert float(found[2]) == round(sacrebleu.corpus_bleu(translations, [references]).score, 2)
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert line.partition(" MB, ")[2] in card
    assert "torch, beam 3, length penalty 1.5: bleu " in card
    assert str(config.run_folder) not in (folder / "export.json").read_text(encoding="utf-8")

    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    monkeypatch.chdir(folder)
    exec(code.replace('"A man sleeps."', repr(LINES[0])), {})
    shown = printed(capsys).rstrip("\n")
    exported = CTranslate2Engine(folder, decoding, torch.device("cpu"))
    assert shown == next(exported.translate(LINES[:1])).text


@pytest.mark.parametrize(("name", "options"), [("huggingface", {}), ("onnx", {"positions": "rotary", "d_model": 128})])
def test_exports_are_verified_with_the_search_of_their_users(
    run: Run, name: str, options: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    target(name)
    config, overrides = run
    write_split(config, "valid", SOURCES, REFERENCES)
    give_model(config, **options)
    words = [f"export.target={name}", "decoding.beam=3", "runtime.kernels=true"]
    assert main(["export", *overrides, *words]) == 0
    assert " MB, 4 of 4 translations identical (100.0%)" in printed(capsys).splitlines()[-1]


@pytest.mark.parametrize(
    ("stage", "words", "message"),
    [
        ("export", ["export.target=huggingface"], "cannot express model.positions=learned"),
        ("export", ["input=nowhere"], "input=nowhere does not exist"),
        ("export", ["input=-"], "valid.en is missing or empty, so the export cannot be verified: name a text"),
        ("export", ["export=huggingface", "export.quantization=int8"], "huggingface cannot be used with"),
        ("translate", ["engine=ctranslate2"], "run `make export` first"),
        ("translate", ["engine=ctranslate2", "decoding.strategy=sample"], "cannot be used with decoding.strategy"),
    ],
)
def test_export_and_its_engine_refuse_bad_input(
    run: Run, text: Path, stage: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config, overrides = run
    assert main([stage, *overrides, f"input={text}", *words]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert message in said
    assert not (config.run_folder / "export").is_dir() or not list((config.run_folder / "export").iterdir())


@pytest.mark.parametrize("named", ["mine", "link"])
def test_export_leaves_what_is_no_export_as_it_was(
    run: Run, text: Path, tmp_path: Path, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, overrides = run
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("three years")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    before = sorted(tmp_path.rglob("*"))
    assert main(["export", *overrides, f"input={text}", f"export.folder={tmp_path / named}"]) == 2
    assert "exists and is no export: name another export.folder" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


@needs_ctranslate2
def test_export_replaces_an_earlier_export_and_the_target_of_a_link(run: Run, text: Path, tmp_path: Path) -> None:
    _, overrides = run
    (tmp_path / "served").mkdir()
    link = tmp_path / "link"
    link.symlink_to("served")
    for _ in range(2):
        words = [f"input={text}", f"export.folder={link}", "decoding.beam=1"]
        assert main(["export", *overrides, *words]) == 0
        assert link.is_symlink()
        card = tmp_path / "served" / "README.md"
        assert card.read_text(encoding="utf-8").startswith("---")
        card.write_text("of before", encoding="utf-8")
    assert not list(tmp_path.glob("*.partial"))


@needs_ctranslate2
def test_an_export_that_behaves_like_another_model_is_deleted(
    run: Run, text: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config, overrides = run
    monkeypatch.setitem(command.MAX_DIFFERENCE, "float32", -1.0)
    assert main(["export", *overrides, f"input={text}", "decoding.beam=1"]) == 2
    assert "the export was deleted because it does not translate as the model does: 4 of 4" in capsys.readouterr().err
    assert not list((config.run_folder / "export").iterdir())
