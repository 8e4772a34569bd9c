"""Linearised trees: there and back, and repair of everything that a model may write."""

from random import Random

import pytest

from nmt.parsing.linearise import Repairs, linearise, parse_line, repair
from nmt.parsing.trees import Leaf, Node, bracketed, clean, leaves, parse_trees, with_leaves, words
from tests.unit.parsing.random_trees import random_leaves, random_tree

DOG = ["John", "has", "a", "dog", "."]
LINE = "(S (NP XX )NP (VP XX (NP XX XX )NP )VP . )S"


def tree(text: str) -> Node:
    (found,) = parse_trees([text], "a tree")
    return found


def test_example_of_vinyals_and_kaiser() -> None:
    example = tree("(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))")
    assert linearise(example, keep_tags=True) == "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )S"
    assert linearise(example) == LINE
    assert parse_line(linearise(example, keep_tags=True), DOG) == example


@pytest.mark.parametrize("seed", range(20))
def test_every_tree_comes_back(seed: int) -> None:
    random = Random(seed)
    for _ in range(50):
        original = clean(random_tree(random, random_leaves(random, ("NN", "VB", "DT", "-LRB-", "$"))))
        assert original is not None
        assert parse_line(linearise(original, keep_tags=True), words(original)) == original
        masked = with_leaves(original, [Leaf("XX", leaf.word) for leaf in leaves(original)])
        assert parse_line(linearise(original), words(original)) == masked


@pytest.mark.parametrize(
    ("line", "wanted", "repairs"),
    [
        (LINE, LINE, Repairs()),
        ("(S (NP XX )NP (VP XX (NP XX XX )NP )VP .", LINE, Repairs(missing_brackets=1, trees=1)),
        ("(S (NP XX )NP (VP XX (NP XX XX . )S", "(S (NP XX )NP (VP XX (NP XX XX . )NP )VP )S",
         Repairs(missing_brackets=2, trees=1)),
        (LINE.replace(" . )S", " )PP . )S"), LINE, Repairs(surplus_brackets=1, trees=1)),
        (LINE + " )S", LINE, Repairs(surplus_brackets=1, trees=1)),
        (LINE.replace("XX XX", "XX (ADJP )ADJP XX"), LINE, Repairs(surplus_brackets=1, trees=1)),
        (LINE.replace(" .", " . . XX"), LINE, Repairs(surplus_words=2, trees=1)),
        ("(S (NP XX )NP (VP XX )VP )S", "(S (NP XX )NP (VP XX )VP XX XX . )S", Repairs(missing_words=3, trees=1)),
        ("(NP XX )NP (VP XX XX XX )VP .", "(TOP (NP XX )NP (VP XX XX XX )VP . )TOP",
         Repairs(missing_brackets=2, trees=1)),
        ("", "(TOP XX XX XX XX . )TOP", Repairs(missing_brackets=2, missing_words=5, trees=1)),
        ("( ) (S", "(TOP XX XX XX XX . )TOP",
         Repairs(missing_brackets=3, surplus_brackets=3, missing_words=5, trees=1)),
    ],
)  # fmt: skip
def test_malformed_lines_are_repaired_and_counted(line: str, wanted: str, repairs: Repairs) -> None:
    found, counted = repair(line, DOG)
    assert found is not None
    assert linearise(found) == wanted
    assert counted == repairs
    assert words(found) == DOG
    assert (parse_line(line, DOG) is None) == bool(repairs.trees)


@pytest.mark.parametrize("seed", range(20))
def test_random_symbols_become_a_tree_over_the_words(seed: int) -> None:
    random = Random(seed)
    symbols = ["(S", "(NP", ")S", ")NP", "XX", ".", "(", ")", "⁇"]
    for _ in range(200):
        line = " ".join(random.choices(symbols, k=random.randint(0, 30)))
        found, _ = repair(line, DOG)
        assert found is not None
        assert words(found) == DOG
        assert parse_line(linearise(found, keep_tags=True), DOG) == found


def test_endless_nesting_is_cut() -> None:
    found, repairs = repair("(NP " * 4000 + "XX", ["dog"])
    assert found is not None
    assert repairs.surplus_brackets == 3800
    assert bracketed(found).count("(NP") == 200


def test_counts_of_repairs_add_up() -> None:
    assert Repairs(1, 2, 3, 4, 1) + Repairs(surplus_words=1, trees=1) == Repairs(1, 2, 3, 5, 2)


def test_punctuation_has_the_tag_of_its_word_whatever_was_predicted() -> None:
    found, repairs = repair("(S . XX )S", ["dog", "?"])
    assert found is not None
    assert linearise(found, keep_tags=True) == "(S XX . )S"
    assert repairs == Repairs()


@pytest.mark.parametrize(
    ("word", "predicted", "wanted"),
    [("'", ".", "XX"), ("'", "''", "''"), ("-", ":", ":"), ("-", ",", "XX"), ("dog", ":", "XX"), ("$", ".", "XX"),
     ("'", "POS", "POS"), ("...", "XX", ":"), ("``", "''", "``")],
)  # fmt: skip
def test_only_marks_can_have_the_tags_of_punctuation(word: str, predicted: str, wanted: str) -> None:
    found, _ = repair(f"(S XX {predicted} )S", ["dog", word])
    assert found is not None
    assert [leaf.tag for leaf in leaves(found)] == ["XX", wanted]


def test_sentence_without_words_has_no_tree() -> None:
    assert repair("(S XX )S", [])[0] is None
