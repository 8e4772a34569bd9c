"""Bracketed files: what is read, what is removed, and what bad files are told."""

import gzip
from pathlib import Path
from random import Random

import pytest

from nmt.errors import UserError
from nmt.parsing.trees import Leaf, Node, bracketed, clean, drawn, parse_trees
from nmt.text.lines import read_lines
from tests.unit.parsing.random_trees import random_leaves, random_tree, tree, words

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
    cleaned = [bracketed(found) for _, whole in parse_trees(read_lines(file), "trees") if (found := clean(whole))]
    assert cleaned == [
        "(S (NP (NNP Mr.) (NNP Vinken)) (VP (VBZ wants) (S (VP (TO to) (VP (VB go) (PP (IN to)))))) (. .))",
        "(NP (NN end))",
    ]


def test_compressed_files_and_several_trees_on_a_line_are_read(tmp_path: Path) -> None:
    file = tmp_path / "trees.mrg.gz"
    file.write_bytes(gzip.compress(b"(NP (NN a)) (NP (NN b))\n(NP\n(NN c))"))
    found = [(line, words(tree)) for line, tree in parse_trees(read_lines(file), "trees")]
    assert found == [(1, ["a"]), (1, ["b"]), (2, ["c"])]


@pytest.mark.parametrize("seed", range(5))
def test_written_trees_are_read_as_they_were(seed: int) -> None:
    random = Random(seed)
    trees = [random_tree(random, random_leaves(random)) for _ in range(100)]
    assert [found for _, found in parse_trees(map(bracketed, trees), "trees")] == trees


def test_brackets_of_the_text_are_escaped_in_files_and_plain_in_sentences() -> None:
    text = "(NP (-LRB- -LRB-) (NN a-RRB-b) (-RRB- -RRB-))"
    assert words(tree(text)) == ["(", "a)b", ")"]
    assert bracketed(tree(text)) == text


def test_the_bracket_around_a_whole_tree_is_removed_if_it_holds_one_phrase() -> None:
    for root in ("", "TOP", "ROOT", "S1"):
        assert clean(tree(f"({root} (NP (NN a)))")) == Node("NP", (Leaf("NN", "a"),))
    several = tree("( (NP (NN a)) (NP (NN b)))")
    assert clean(several) == Node("TOP", several.children)
    assert clean(tree("( (S (NP (-NONE- *)) (VP (-NONE- *?*))))")) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(S (NP (NN a))", r"line 1: .* lacks 1 closing"),
        ("(S (NP (NN a)))\n(S (NP\n(NN b)", r"line 2: .* lacks 2 closing"),
        ("(S (NN a))\n\n)", r"line 3: `\)` is outside of all brackets"),
        ("words (S (NN a))", "`words` is outside"),
        *(
            (text, r"line 1: \(.*\) is neither a phrase, such as .*, nor a tag with one word inside a phrase")
            for text in ("()", "(S (NP ) (VP (VB go)))", "(S (NN a b))", "(S (NN a) b)", "(NP dog (NN a))", "(NN dog)",
                         "(S ((NN a)) (NN b))")
        ),
        ("(" * 300, "is a bracket not closed"),
        ("(S " + "(NN a) " * 8000, "is a bracket not closed"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_file_and_line(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        list(parse_trees(text.split("\n"), "trees.mrg"))
    assert str(caught.value).startswith("trees.mrg, line ")
    assert "\n" not in str(caught.value)


def test_a_drawing_has_a_line_per_phrase_and_word() -> None:
    assert drawn(tree("(S (NP (DT the) (NN dog) (NN dog)) (VP (VB barks)))")).split("\n") == [
        "S",
        "├─ NP",
        "│  ├─ DT the",
        "│  ├─ NN dog",
        "│  └─ NN dog",
        "└─ VP",
        "   └─ VB barks",
    ]
