"""Scores of trees, compared with figures worked by hand, with figures that evalb prints, and with evalb itself."""

import os
import subprocess
from pathlib import Path
from random import Random

import pytest

from nmt.parsing.bracket_score import BracketCounts, compare, score_trees
from nmt.parsing.trees import Leaf, Node, bracketed, parse_trees
from tests.unit.parsing.random_trees import TAGS, changed, random_leaves, random_tree

EVALB = os.environ.get("EVALB", "")
"""The folder with evalb and COLLINS.prm; without it, the comparison with evalb is skipped."""
SENTENCE = "(S (A (P this)) (B (Q is) (A (R a) (T test))))"
PRINTED_BY_EVALB = {
    "(S (A (P this)) (B (Q is) (A (R a) (T test))))": (4, 4, 4),
    "(S (A (P this)) (B (Q is) (C (R a) (T test))))": (3, 4, 4),
    "(S (A (P this)) (B (Q is) (A (R a) (U test))))": (4, 4, 4),
    "(S (C (P this)) (B (Q is) (A (R a) (U test))))": (3, 4, 4),
    "(S (A (P this)) (B (Q is) (R a) (A (T test))))": (3, 4, 4),
    "(S (A (P this) (Q is)) (A (R a) (T test)))": (2, 4, 3),
    "(S (P this) (Q is) (R a) (T test))": (1, 4, 1),
    "(S (A (P this)) (B (Q is) (A (A (R a) (T test)))))": (4, 4, 5),
    "(S (A (P this)) (B (Q is) (A (A (A (A (A (R a) (T test))))))))": (4, 4, 8),
    "(TOP (S (A (P this)) (B (Q is) (A (R a) (T test)))))": (4, 4, 4),
    "(S (A-SBJ-1 (P this)) (B-WHATEVER (Q is) (A (R a) (T test))))": (4, 4, 4),
    "(S (A (P this)) (B (Q is) (A (R a) (T test))) (-NONE- *))": (4, 4, 4),
}
"""Matched, reference and predicted brackets that evalb prints for its own sample trees, compared with SENTENCE."""
ERRORS_OF_EVALB = (
    "(S (A (P this)) (B (Q was) (A (A (R a) (T test)))))",
    "(S (A (P this)) (B (Q is) (U not) (A (A (R a) (T test)))))",
    "(S (A (P This)) (B (Q is) (A (R a) (T test))))",
)


def tree(text: str) -> Node:
    (found,) = parse_trees([text], "a tree")
    return found


def counts(reference: str, predicted: str) -> tuple[int, int, int]:
    found = compare(tree(reference), tree(predicted))
    assert not found.errors
    return found.matched, found.reference, found.predicted


@pytest.mark.parametrize("predicted", PRINTED_BY_EVALB)
def test_sample_of_evalb_has_the_counts_that_evalb_prints(predicted: str) -> None:
    assert counts(SENTENCE, predicted) == PRINTED_BY_EVALB[predicted]


@pytest.mark.parametrize("predicted", ERRORS_OF_EVALB)
def test_other_words_are_an_error_that_no_other_count_includes(predicted: str) -> None:
    assert compare(tree(SENTENCE), tree(predicted)) == BracketCounts(sentences=1, errors=1)


def test_tree_that_could_not_be_read_is_an_error() -> None:
    assert compare(tree(SENTENCE), None) == BracketCounts(sentences=1, errors=1)


def test_punctuation_is_deleted_before_spans_are_counted() -> None:
    reference = "(S (NP (NN dogs)) (, ,) (VP (VB bark)) (. .))"
    assert counts(reference, "(S (NP (NN dogs) (, ,)) (VP (VB bark) (. .)))") == (3, 3, 3)


@pytest.mark.parametrize("tag", [",", ":", "``", "''", "."])
def test_every_punctuation_tag_is_deleted(tag: str) -> None:
    reference = f"(S (NP (NN dogs)) (VP (VB bark) ({tag} x)))"
    assert counts(reference, f"(S (NP (NN dogs) ({tag} x)) (VP (VB bark)))") == (3, 3, 3)


@pytest.mark.parametrize("tag", ["-LRB-", "-RRB-", "$", "#", "HYPH"])
def test_other_symbols_are_words(tag: str) -> None:
    # NP covers one word in the reference, and two in the prediction
    reference = f"(S (NP (NN dogs)) (VP (VB bark) ({tag} x)))"
    assert counts(reference, f"(S (NP (NN dogs) (VB bark)) (VP ({tag} x)))") == (1, 3, 3)


def test_tag_of_punctuation_on_one_side_only_is_an_error() -> None:
    assert compare(tree("(S (NP (NN dogs)) (. .))"), tree("(S (NP (NN dogs)) (XX .))")).errors == 1


def test_advp_equals_prt() -> None:
    assert counts("(VP (VB give) (PRT (RP up)))", "(VP (VB give) (ADVP (RB up)))") == (2, 2, 2)


def test_function_tags_do_not_count() -> None:
    reference = "(S (NP-SBJ-1 (NN dogs)) (VP=2 (VB bark)))"
    assert counts(reference, "(S (NP (NN dogs)) (VP (VB bark)))") == (3, 3, 3)


def test_empty_elements_and_the_phrases_they_empty_are_deleted() -> None:
    reference = "(S (NP-SBJ (NN dogs)) (VP (VB try) (S (NP (-NONE- *-1)) (VP (TO to) (VB bark)))))"
    # the inner S stays, and now covers what VP covers: S[0,4] NP[0,1] VP[1,4] S[2,4] VP[2,4]
    assert counts(reference, "(S (NP (NN dogs)) (VP (VB try) (S (VP (TO to) (VB bark)))))") == (5, 5, 5)


def test_phrase_of_punctuation_only_is_deleted() -> None:
    assert counts("(S (NP (NN dogs)) (PRN (: --)))", "(S (NP (NN dogs) (: --)))") == (2, 2, 2)


def test_equal_brackets_are_matched_as_often_as_both_trees_have_them() -> None:
    assert counts("(NP (NP (NP (NN dogs))))", "(NP (NN dogs))") == (1, 3, 1)
    assert counts("(NP (NP (NN dogs)))", "(NP (NP (NP (NN dogs))))") == (2, 2, 3)


@pytest.mark.parametrize("root", ["TOP", "ROOT", "S1", ""])
def test_bracket_around_the_tree_is_not_counted(root: str) -> None:
    assert counts("(S (NP (NN dogs)) (VP (VB bark)))", f"({root} (S (NP (NN dogs)) (VP (VB bark))))") == (3, 3, 3)


def test_sentence_of_punctuation_only_is_skipped() -> None:
    assert compare(tree("(NP (. .))"), tree("(NP (. .))")) == BracketCounts(sentences=1, skipped=1)


def test_percentages_are_those_worked_by_hand() -> None:
    first = "(S (NP (NN dogs)) (VP (VB bark)))"
    pairs = [
        (tree(first), tree(first)),  # 3 of 3 brackets
        (tree(first), tree("(S (VP (NN dogs) (VB bark)))")),  # S is right: 1 of 2; VP covers too much
        (tree(first), tree("(S (NN cats))")),  # an error
    ]
    found = score_trees(pairs)
    assert (found.sentences, found.errors, found.complete) == (3, 1, 1)
    assert found.precision == pytest.approx(100 * 4 / 5)
    assert found.recall == pytest.approx(100 * 4 / 6)
    assert found.f1 == pytest.approx(2 * 80 * (400 / 6) / (80 + 400 / 6))
    assert found.complete_match == 50


def test_no_bracket_in_common_scores_zero() -> None:
    found = score_trees([(tree("(NP (NN dogs))"), tree("(VP (NN dogs))"))])
    assert (found.precision, found.recall, found.f1, found.complete_match) == (0, 0, 0, 0)


@pytest.mark.skipif(not EVALB, reason="EVALB does not name a folder with evalb and COLLINS.prm")
@pytest.mark.parametrize("seed", range(20))
def test_random_trees_have_the_scores_of_evalb(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    pairs = [_random_pair(random) for _ in range(200)]
    files = [tmp_path / "reference", tmp_path / "predicted"]
    for side, file in enumerate(files):
        file.write_text("".join(f"{bracketed(pair[side])}\n" for pair in pairs))
    command = [f"{EVALB}/evalb", "-p", f"{EVALB}/COLLINS.prm", "-e", "100000", *map(str, files)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    summary = printed.partition("-- All --")[2].partition("-- len")[0].splitlines()
    wanted = {name.strip(): float(value) for name, _, value in (line.partition("=") for line in summary) if value}
    found = score_trees(pairs)
    assert found.sentences == wanted["Number of sentence"]
    assert found.errors == wanted["Number of Error sentence"]
    assert found.skipped == wanted["Number of Skip  sentence"]
    assert found.recall == pytest.approx(wanted["Bracketing Recall"], abs=0.0051)
    assert found.precision == pytest.approx(wanted["Bracketing Precision"], abs=0.0051)
    assert found.f1 == pytest.approx(wanted["Bracketing FMeasure"], abs=0.0051)
    assert found.complete_match == pytest.approx(wanted["Complete match"], abs=0.0051)


def _random_pair(random: Random) -> tuple[Node, Node]:
    """Return a tree and a changed or unrelated one over the same words; a few differ in their tags, an error."""
    leaves = random_leaves(random)
    first = random_tree(random, leaves)
    if random.random() < 0.6:
        second = changed(random, first)
        assert isinstance(second, Node)
        return first, second
    if random.random() < 0.1:
        leaves = [Leaf(random.choice(TAGS), leaf.word) for leaf in leaves]
    return first, random_tree(random, leaves)
