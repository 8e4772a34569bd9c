"""The script that compares derived settings with fixed ones: its cells, their settings, and its table."""

from argparse import Namespace
from pathlib import Path

import pytest

from nmt.cli import composed_settings
from nmt.config.compose import compose
from nmt.data.prepare import prepare
from nmt.features.own_text.settings import OwnText
from nmt.runs.layout import RunLayout, scores_file
from nmt.storage.files import write_json
from own_text import __main__ as tool
from tests.integration.toy import pairs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The raw text; the script writes into the current folder."""
    monkeypatch.chdir(tmp_path)
    raw = tmp_path / "raw"
    raw.mkdir()
    for seed, (name, count) in enumerate({"train": 500, "val": 20, "test2016": 20}.items()):
        for side, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[side]}\n" for pair in pairs(count, seed))
            (raw / f"{name}.{language}").write_text(lines, encoding="utf-8")
    return raw


def cell(folder: Path, recipe: str) -> tool.Cell:
    return tool.Cell("toy", folder, 300, 5.0, recipe, 2)


def test_cells_are_all_combinations_or_those_that_are_named(folder: Path) -> None:
    options = Namespace(
        texts=[("a", folder), ("b", folder)],
        pairs=[0, 7],
        minutes=[5.0, 0.5],
        recipes=["fixed", "derived"],
        pieces=[0],
        seeds=3,
        cells=[],
        languages=["en", "fi"],
    )
    names = [each.name for each in tool.cells_of(options)]
    assert len({*names}) == len(names) == 2 * 2 * 2 * 2 * 3
    assert "a-5-fixed-1" in names
    assert all(each.languages == ("en", "fi") for each in tool.cells_of(options))
    options.cells = ["b-7-0.5-derived-3"]
    assert [each.name for each in tool.cells_of(options)] == options.cells


def test_other_vocabularies_have_the_plan_of_the_recipe(folder: Path) -> None:
    usual = cell(folder, "derived")
    larger = usual._replace(pieces=400)
    assert (larger.name, larger.plan_file) == ("toy-300-5-derived-400-2", usual.plan_file)
    tool._write_text(usual)
    found = [composed_settings(tool.settings(each)) for each in (usual, larger)]
    assert [each.tokenizer.vocab_size == 400 for each in found] == [False, True]
    assert found[0].data.corpus != found[1].data.corpus


def test_text_may_be_of_other_languages(folder: Path) -> None:
    for file in folder.glob("*.de"):
        file.rename(file.with_suffix(".zh"))
    other = cell(folder, "derived")._replace(languages=("en", "zh"))
    tool._write_text(other)
    fixed, derived = (composed_settings(tool.settings(other._replace(recipe=each))) for each in ("fixed", "derived"))
    for config in (fixed, derived):
        assert (config.data.source_lang, config.data.target_lang) == ("en", "zh")
    assert prepare(derived, say=lambda _: None).encoded("train").pairs == 300


def test_both_recipes_train_as_long_as_the_minutes(folder: Path) -> None:
    each = cell(folder, "derived")
    tool._write_text(each)
    assert len((tool.TEXT / "toy-300.train.en").read_text(encoding="utf-8").splitlines()) == 300
    config = composed_settings(tool.settings(each))
    manifest = prepare(config, say=lambda _: None)
    fixed = tool.planned(cell(folder, "fixed"), config, manifest, step_seconds=2.0)
    assert fixed == {"training.steps": 5 * 60 / 2}
    derived = tool.planned(each, config, manifest, step_seconds=2.0)
    assert isinstance(derived["training.steps"], int)
    assert 0 < derived["training.steps"] * 2 <= 5 * 60
    assert derived["training.schedule"] == "linear"
    settings = compose(tool.settings(cell(folder, "fixed")))
    assert not settings.of(OwnText).derive


def test_table_has_a_row_for_each_run_that_is_scored(folder: Path) -> None:
    cells = [cell(folder, recipe) for recipe in ("fixed", "derived")]
    run = RunLayout(tool.RUNS / cells[1].name)
    for split, score in (("valid", 12.345), ("test", 6.789)):
        write_json(scores_file(run.evaluation, split), {"bleu": {"score": score}, "perplexity": 7.654})
    write_json(run.folder / "plan.json", {"training.steps": 1230, "model.d_model": 128})
    *_, last = rows = list(tool.table(cells))
    assert len(rows) == 3
    assert last == "| toy-300 | 5 | derived | 2 | 1,230 | 128 | 7.65 | 12.35 | 6.79 |"
