"""The runs that `nmt describe` names, and the table and drawing of all of them."""

import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from learning_curves.chart import draw
from learning_curves.runs import BASE, RUNS
from nmt.commands.describe import EpochFigures, RunFigures, describe
from nmt.config.compose import compose
from nmt.features.forecast.similar_runs import MAX_FACTOR, MAX_SHOWN, lines, made_runs
from tests.integration.toy import succeed

MULTI30K = ("experiment=multi30k", "data.corpus=none")


def figures_with(flops: float, pairs: int | None) -> RunFigures:
    figures = describe(compose(MULTI30K), 1)
    data = None if pairs is None else EpochFigures(pairs, 10, 1.0, 100.0, 10.0, 20)
    return replace(figures, flops=round(flops), data=data)


def test_describe_names_runs_with_as_much_computation() -> None:
    said = succeed(["describe", *MULTI30K])
    assert "39.0 BLEU (test): multi30k, 29,000 pairs, d_model 256, 2,500 steps of 1,024 tokens" in said
    assert "9.8 minutes" in said


@pytest.mark.parametrize("pairs", [None, 2000, 29_000, 165_000])
def test_the_most_similar_runs_come_first(pairs: int | None) -> None:
    flops = 3e12
    shown = lines(compose(MULTI30K), figures_with(flops, pairs))
    assert len(shown) == 1 + MAX_SHOWN

    def distance(line: str) -> float:
        found = re.search(r", ([\d,]+) pairs.* ([\d.e+]+) FLOPs", line)
        assert found
        of_text = abs(math.log(int(found[1].replace(",", "")) / pairs)) if pairs else 0.0
        return abs(math.log(float(found[2]) / flops)) + of_text

    distances = [distance(line) for line in shown[1:]]
    assert distances == sorted(distances)
    assert max(distances) <= sorted(each.distance(flops, pairs) for each in made_runs())[MAX_SHOWN - 1] + 0.05


@pytest.mark.parametrize("flops", [1e6, 1e20])
def test_runs_of_quite_another_size_are_not_named(flops: float) -> None:
    assert lines(compose(MULTI30K), figures_with(flops, 29_000)) == []
    assert all(each.flops / flops < 1 / MAX_FACTOR or each.flops / flops > MAX_FACTOR for each in made_runs())


def test_a_target_side_that_is_no_text_has_no_similar_runs() -> None:
    trees = SimpleNamespace(data=SimpleNamespace(target_lang="trees"))
    assert lines(trees, figures_with(3e12, 29_000)) == []  # type: ignore[arg-type]


def test_operations_of_the_runs_are_those_that_describe_counts() -> None:
    larger = [each for each in made_runs() if each.d_model == 256 and each.split == "test"]
    assert larger
    for each in larger:
        settings = [f"training.steps={each.steps}", f"training.batch_tokens={each.batch_tokens}"]
        assert describe(compose([*MULTI30K, *settings]), 1).flops == pytest.approx(each.flops, rel=1e-3)
    runs = [each for each in made_runs() if each.split == "development"]
    planned = RUNS["a1"]
    settings = [*BASE, *planned.settings, f"tokenizer.vocab_size={planned.words}", f"training.steps={planned.steps}"]
    assert describe(compose([*settings, "data.corpus=none"]), 1).flops == runs[0].flops


def test_table_and_drawing_have_all_runs_that_translate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("vl_convert")
    draw(tmp_path / "chart.svg")
    rows = capsys.readouterr().out.splitlines()[2:]
    assert len(rows) == sum(each.bleu >= 1 for each in made_runs())
    drawing = (tmp_path / "chart.svg").read_text(encoding="utf-8")
    assert drawing.startswith("<svg")
    assert drawing.count('aria-roledescription="point"') == len(rows)
