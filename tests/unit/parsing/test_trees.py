"""Bracketed files: what is read, what is removed, and what bad files are told."""

import gzip
from pathlib import Path
from random import Random

import pytest

from nmt.errors import UserError
from nmt.parsing.trees import Leaf, Node, bracketed, clean, drawn, parse_trees, read_trees, words
from tests.unit.parsing.random_trees import random_leaves, random_tree

MRG = """
( (S
    (NP-SBJ-1 (NNP Mr.) (NNP Vinken) )
    (VP (VBZ wants)
      (S
        (NP-SBJ (-NONE- *-1) )
        (VP (TO to)
          (VP (VB go) (PP=2 (IN to) (-NONE- *ICH*) )))))
    (. .) ))
( (NP (NN end) (-NONE- *U*) ))
"""
"""Two trees in the format of the Penn Treebank."""


def test_files_of_the_penn_treebank_are_read_and_cleaned(tmp_path: Path) -> None:
    file = tmp_path / "wsj_0001.mrg"
    file.write_text(MRG)
    cleaned = [bracketed(tree) for _, whole in read_trees(file) if (tree := clean(whole))]
    assert cleaned == [
        "(S (NP (NNP Mr.) (NNP Vinken)) (VP (VBZ wants) (S (VP (TO to) (VP (VB go) (PP (IN to)))))) (. .))",
        "(NP (NN end))",
    ]


def test_compressed_files_and_several_trees_on_a_line_are_read(tmp_path: Path) -> None:
    file = tmp_path / "trees.mrg.gz"
    file.write_bytes(gzip.compress(b"(NP (NN a)) (NP (NN b))\n(NP\n(NN c))"))
    assert [(line, words(tree)) for line, tree in read_trees(file)] == [(1, ["a"]), (1, ["b"]), (2, ["c"])]


@pytest.mark.parametrize("seed", range(20))
def test_written_trees_are_read_as_they_were(seed: int) -> None:
    random = Random(seed)
    trees = [random_tree(random, random_leaves(random)) for _ in range(50)]
    assert list(parse_trees(map(bracketed, trees), "trees")) == trees


def test_brackets_of_the_text_are_escaped_in_files_and_plain_in_sentences() -> None:
    (tree,) = parse_trees(["(NP (-LRB- -LRB-) (NN a-RRB-b) (-RRB- -RRB-))"], "a tree")
    assert words(tree) == ["(", "a)b", ")"]
    assert bracketed(tree) == "(NP (-LRB- -LRB-) (NN a-RRB-b) (-RRB- -RRB-))"


def test_root_with_several_parts_stays() -> None:
    (tree,) = parse_trees(["( (NP (NN a)) (NP (NN b)))"], "a tree")
    assert clean(tree) == Node("TOP", tree.children)


@pytest.mark.parametrize("root", ["", "TOP", "ROOT", "S1"])
def test_root_with_one_part_is_removed(root: str) -> None:
    (tree,) = parse_trees([f"({root} (NP (NN a)))"], "a tree")
    assert clean(tree) == Node("NP", (Leaf("NN", "a"),))


def test_tree_without_words_is_cleaned_to_nothing() -> None:
    (tree,) = parse_trees(["( (S (NP (-NONE- *)) (VP (-NONE- *?*))))"], "a tree")
    assert clean(tree) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(S (NP (NN a))", r"line 1: .* lacks 1 closing"),
        ("(S (NP (NN a)))\n(S (NP\n(NN b)", r"line 2: .* lacks 2 closing"),
        ("(S (NN a)))", r"line 1: a `\)` without its `\(`"),
        ("(S (NN a))\n\n)", "line 3: a `"),
        ("()", r"line 1: \(\) holds neither words nor phrases"),
        ("(S (NP ) (VP (VB go)))", r"\(NP \) holds neither"),
        ("words (S (NN a))", "`words` is outside"),
        ("(S (NN a b))", "`b` needs a bracket of its own"),
        ("(S (NN a) b)", "`b` needs a bracket of its own"),
        ("(NP dog (NN a))", "both a word and phrases"),
        ("(NN dog)", "single word"),
        ("(S ((NN a)) (NN b))", "no label"),
        ("(" * 300, "more than 200 brackets are open"),
        ("(S " + "(NN a) " * 5001, "more than 5,000 words"),
    ],
)
def test_bad_files_are_refused_with_file_and_line(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        list(parse_trees(text.split("\n"), "trees.mrg"))
    assert str(caught.value).startswith("trees.mrg, line ")
    assert "\n" not in str(caught.value)


def test_drawing_has_a_line_per_phrase_and_word() -> None:
    (tree,) = parse_trees(["(S (NP (DT the) (NN dog)) (VP (VB barks)))"], "a tree")
    assert drawn(tree).split("\n") == [
        "S",
        "├─ NP",
        "│  ├─ DT the",
        "│  └─ NN dog",
        "└─ VP",
        "   └─ VB barks",
    ]


def test_drawing_of_equal_parts_ends_with_the_last() -> None:
    leaf = Leaf("NN", "dog")
    assert drawn(Node("NP", (leaf, leaf))).split("\n") == ["NP", "├─ NN dog", "└─ NN dog"]
