"""The contents of the report, section by section."""

import re

import pytest
import sacrebleu

from nmt.evaluation.record import EvaluationRecord
from nmt.evaluation.split import Split
from nmt.parsing.trees import Node, parse_trees
from nmt.report import trees
from nmt.report.charts import HEIGHT, WIDTH, draw
from nmt.report.run import Evaluated
from nmt.report.sentences import mark_differences, sentences


@pytest.mark.parametrize(
    ("left", "right", "marked"),
    [
        ("a b c", "a x c", ("a <del>b</del> c", "a <ins>x</ins> c")),
        ("", "new", ("", "<ins>new</ins>")),
        ("<old>", "", ("<del>&lt;old&gt;</del>", "")),
    ],
)
def test_words_of_one_line_only_are_marked(left: str, right: str, marked: tuple[str, str]) -> None:
    assert mark_differences(left, right) == marked


def test_every_reference_counts_and_the_most_similar_one_is_compared() -> None:
    others = [["p q r"], ["der Hund sah die Katze"]]
    record = EvaluationRecord(split="test", scores={})
    evaluated = Evaluated(
        record, Split("test", ["a b"], others[0], further_references=others[1:]), ["der Hund sieht die Katze"]
    )
    (shown,) = sentences(evaluated)
    assert shown.chrf == pytest.approx(sacrebleu.sentence_chrf(evaluated.hypotheses[0], ["p q r", *others[1]]).score)
    assert shown.reference == "der Hund sah die Katze"


def test_a_chart_places_the_points_of_a_curve_between_its_axes() -> None:
    html = str(draw("<Loss>", {"a": [(0, 1.0), (50, 3.0), (100, 2.0)], "b": [(100, 5.0)]}))
    assert "&lt;Loss&gt;" in html
    assert f'd="M0.0 {HEIGHT}.0L{WIDTH / 2} {HEIGHT / 2}L{WIDTH}.0 {HEIGHT * 3 / 4}"' in html
    assert "<title>a, step 50: 3</title>" in html
    assert 'class="series-2 single"' in html
    assert "<title>" in str(draw("flat", {"a": [(0, 0.0), (1, 0.0)]}, zero=True))


def tree(text: str) -> Node:
    ((_, found),) = parse_trees([text], "a tree")
    return found


@pytest.mark.parametrize(
    ("first_tree", "second_tree", "marked"),
    [
        ("(S (NP (NN x)) (VP (VB y) (NP (NN z))))", "(S (NP (NN x)) (VP (VB y) (NP (NN z))))", []),
        ("(S (NP (NN x)) (VP (VB y) (NP (NN z))))", "(S (NP (NN x)) (VP (VB y)) (NP (NN z)))", ["VP"]),
        ("(NP (NP (NP (NN x))))", "(NP (NN x))", ["NP", "NP"]),
    ],
)
def test_only_brackets_that_the_other_tree_lacks_are_marked(
    first_tree: str, second_tree: str, marked: list[str]
) -> None:
    assert re.findall(
        '<span class="missed">(.*?)</span>', trees.draw(tree(first_tree), tree(second_tree), "missed")
    ) == (marked)


def test_the_worst_trees_and_the_longest_right_ones_are_drawn() -> None:
    text = {
        "a b": ("(NP XX XX )NP", "(NP XX XX )NP"),
        "c d e": ("(NP XX XX XX )NP", "(VP XX XX XX )VP"),
        "f g h": ("(TOP XX XX XX )TOP", "(TOP XX XX XX )TOP"),  # right, without a bracket that is scored
    }
    references, hypotheses = map(list, zip(*text.values(), strict=True))
    found = Split("test", list(text), references)
    split = Evaluated(EvaluationRecord(split="test", scores={}), found, hypotheses)
    assert [(each.number, each.f1) for each in trees.tree_pairs(split)] == [(2, 0.0), (3, 100.0), (1, 100.0)]


def test_drawn_trees_are_escaped() -> None:
    assert "&lt;script&gt;" in trees.draw(tree("(NP (NN <script>))"), tree("(NP (NN x))"), "missed")
