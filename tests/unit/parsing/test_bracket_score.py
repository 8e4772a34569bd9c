"""Scores of trees, compared with figures worked by hand, with figures that evalb prints, and with evalb itself."""

import pytest

from nmt.parsing.bracket_score import BracketCounts, compare, score_trees
from tests.unit.parsing.random_trees import tree

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
DOGS = "(S (NP (NN dogs)) (VP (VB bark)))"


@pytest.mark.parametrize(
    ("reference", "predicted", "counts"),
    [
        *((SENTENCE, predicted, counts) for predicted, counts in PRINTED_BY_EVALB.items()),
        # punctuation is deleted before spans are counted
        *(
            (f"(S (NP (NN dogs)) (VP (VB bark) ({tag} x)))", f"(S (NP (NN dogs) ({tag} x)) (VP (VB bark)))", (3, 3, 3))
            for tag in (",", ":", "``", "''", ".")
        ),
        # other symbols are words: NP covers one word in the reference, and two in the prediction
        *(
            (f"(S (NP (NN dogs)) (VP (VB bark) ({tag} x)))", f"(S (NP (NN dogs) (VB bark)) (VP ({tag} x)))", (1, 3, 3))
            for tag in ("-LRB-", "$", "HYPH")
        ),
        ("(VP (VB give) (PRT (RP up)))", "(VP (VB give) (ADVP (RB up)))", (2, 2, 2)),
        # the inner S stays without its empty subject, and covers what VP covers
        (
            "(S (NP-SBJ (NN dogs)) (VP=2 (VB try) (S (NP (-NONE- *-1)) (VP (TO to) (VB bark)))))",
            "(S (NP (NN dogs)) (VP (VB try) (S (VP (TO to) (VB bark)))))",
            (5, 5, 5),
        ),
        ("(S (NP (NN dogs)) (PRN (: --)))", "(S (NP (NN dogs) (: --)))", (2, 2, 2)),
        # equal brackets are matched as often as both trees have them
        ("(NP (NP (NP (NN dogs))))", "(NP (NN dogs))", (1, 3, 1)),
        ("(NP (NP (NN dogs)))", "(NP (NP (NP (NN dogs))))", (2, 2, 3)),
        *((DOGS, f"({root} {DOGS})", (3, 3, 3)) for root in ("TOP", "ROOT", "S1", "")),
    ],
)
def test_brackets_are_counted_as_evalb_counts_them(
    reference: str, predicted: str, counts: tuple[int, int, int]
) -> None:
    found = compare(tree(reference), tree(predicted))
    assert not found.errors
    assert (found.matched, found.reference, found.predicted) == counts


def test_trees_that_cannot_be_compared_are_in_no_other_count() -> None:
    error = BracketCounts(sentences=1, errors=1)
    assert [compare(tree(SENTENCE), tree(predicted)) for predicted in ERRORS_OF_EVALB] == [error] * 3
    assert compare(tree(SENTENCE), None) == error
    assert compare(tree("(S (NP (NN dogs)) (. .))"), tree("(S (NP (NN dogs)) (XX .))")) == error
    assert compare(tree("(NP (. .))"), tree("(NP (. .))")) == BracketCounts(sentences=1, skipped=1)


def test_percentages_are_those_worked_by_hand() -> None:
    pairs = [
        (tree(DOGS), tree(DOGS)),  # 3 of 3 brackets
        (tree(DOGS), tree("(S (VP (NN dogs) (VB bark)))")),  # S is right: 1 of 2; VP covers too much
        (tree(DOGS), tree("(S (NN cats))")),  # an error
    ]
    found = score_trees(pairs)
    assert (found.sentences, found.errors, found.complete) == (3, 1, 1)
    assert found.precision == pytest.approx(100 * 4 / 5)
    assert found.recall == pytest.approx(100 * 4 / 6)
    assert found.f1 == pytest.approx(2 * 80 * (400 / 6) / (80 + 400 / 6))
    assert found.complete_match == 50
    found = score_trees([(tree("(NP (NN dogs))"), tree("(VP (NN dogs))"))])
    assert (found.precision, found.recall, found.f1, found.complete_match) == (0, 0, 0, 0)
