"""The contents of the report, section by section."""

import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

from nmt.config.tree import Config
from nmt.data.filters.pipeline import filter_counts
from nmt.data.manifest import read_manifest
from nmt.data.store import PairStore
from nmt.errors import UserError
from nmt.evaluation.record import EvaluationRecord
from nmt.report import curves
from nmt.report.charts import HEIGHT, MAX_POINTS, WIDTH, draw, thin_out
from nmt.report.run import Evaluated, Run, read_run
from nmt.report.sentences import Sentence, mark_differences, sentences, worst_and_best


def read(config: Config, name: str = "first") -> Run:
    return read_run(Path(config.paths.outputs), name, Path(config.paths.data))


def evaluation(**fields: Any) -> EvaluationRecord:
    return EvaluationRecord(split="test", scores={}, **fields)


def test_error_for_a_missing_run_names_the_most_similar_run(first: Config) -> None:
    with pytest.raises(UserError, match=r"no run frist in .*outputs: did you mean first\?"):
        read(first, "frist")


def test_training_time_excludes_the_time_between_interruption_and_resume(first: Config) -> None:
    assert read(first).training_seconds() == 12.0 + 9.0


def test_missing_text_of_a_split_is_refused_by_name(first: Config, tmp_path: Path) -> None:
    run = read(first)
    assert run.splits() == ["test"]
    assert len(run.evaluated("test").hypotheses) == 30
    moved = replace(run, data_folder=tmp_path)
    with pytest.raises(UserError, match=r"test\.en is not there: run `make data`"):
        moved.evaluated("test")


def test_sentences_of_a_report_have_no_tags(first: Config, tmp_path: Path) -> None:
    run = read(first)
    plain = run.evaluated("test")
    (tmp_path / "test.en").write_text("".join(f"<de> {line}\n" for line in plain.sources), encoding="utf-8")
    shutil.copyfile(run.data_folder / "test.de", tmp_path / "test.de")
    tagged = replace(run, data_folder=tmp_path, config=replace(run.config, data=replace(run.config.data, tag="<de>")))
    assert tagged.evaluated("test") == plain


@pytest.mark.parametrize("count", [0, 1, MAX_POINTS, MAX_POINTS + 1, 5 * MAX_POINTS + 3])
def test_thinned_curves_keep_their_first_and_last_points(count: int) -> None:
    points = [(step, 0.5) for step in range(count)]
    thinned = thin_out(points)
    assert len(thinned) <= MAX_POINTS + 1
    assert [*thinned[:1], *thinned[-1:]] == [*points[:1], *points[-1:]]
    assert set(thinned) <= set(points)


def test_filter_counts_add_up(first: Config) -> None:
    counts = filter_counts(read_manifest(first.data_folder))
    assert (counts[0].left, counts[-1].left) == (200, len(PairStore.open(first.data_folder, "train")))
    for before, after in pairwise(counts):
        assert before.left - after.dropped == after.left
    assert {count.name: count.limit for count in counts}["pieces"].startswith("data.max_pieces=")


@pytest.mark.parametrize(
    ("left", "right", "marked"),
    [
        ("a b c", "a b c", ("a b c", "a b c")),
        ("a b c", "a x c", ("a <del>b</del> c", "a <ins>x</ins> c")),
        ("", "new", ("", "<ins>new</ins>")),
        ("<old>", "", ("<del>&lt;old&gt;</del>", "")),
    ],
)
def test_words_of_one_line_only_are_marked(left: str, right: str, marked: tuple[str, str]) -> None:
    assert mark_differences(left, right) == marked


@pytest.mark.parametrize(("count", "worst", "best"), [(3, [1, 2, 3], [7, 6, 5]), (5, [1, 2, 3, 4, 5], [7, 6])])
def test_no_sentence_is_among_both_the_worst_and_the_best(count: int, worst: list[int], best: list[int]) -> None:
    found = [Sentence(number, "", "", "", float(number)) for number in range(1, 8)]
    assert [[each.number for each in side] for side in worst_and_best(found, count)] == [worst, best]


def test_a_chart_places_the_points_of_a_curve_between_its_axes() -> None:
    html = str(draw("<Loss>", {"a": [(0, 1.0), (50, 3.0), (100, 2.0)], "b": [(100, 5.0)]}))
    assert "&lt;Loss&gt;" in html
    assert f'd="M0.0 {HEIGHT}.0L{WIDTH / 2} {HEIGHT / 2}L{WIDTH}.0 {HEIGHT * 3 / 4}"' in html
    assert "<title>a, step 50: 3</title>" in html
    assert 'class="series-2 single"' in html


def test_curves_leave_out_values_that_are_not_finite(first: Config) -> None:
    assert curves.points(read(first), "train", "loss") == [(10, 5.0)]


def test_every_reference_counts_and_the_most_similar_one_is_compared() -> None:
    others = [["p q r"], ["der Hund sah die Katze"]]
    evaluated = Evaluated("test", evaluation(), ["a b"], others[0], others[1:], ["der Hund sieht die Katze"])
    (shown,) = sentences(evaluated)
    assert shown.chrf == pytest.approx(sacrebleu.sentence_chrf(evaluated.hypotheses[0], ["p q r", *others[1]]).score)
    assert shown.reference == "der Hund sah die Katze"
