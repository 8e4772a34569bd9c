"""Linearised trees: there and back, and repair of everything that a model may write."""

from pathlib import Path
from random import Random

import pytest

from nmt.config.data import TREES
from nmt.errors import UserError
from nmt.evaluation.metrics import score_text
from nmt.parsing.linearise import Repairs, linearise, parse_line, repair, repair_all
from nmt.parsing.trees import Leaf, clean, leaves, with_leaves
from nmt.text.tokenizer import Tokenizer
from nmt.text.train_tokenizer import train_on_symbols
from tests.unit.parsing.random_trees import random_leaves, random_tree, tree, words

DOG = ["John", "has", "a", "dog", "."]
LINE = "(S (NP XX )NP (VP XX (NP XX XX )NP )VP . )S"


def test_example_of_vinyals_and_kaiser() -> None:
    example = tree("(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))")
    assert linearise(example, keep_tags=True) == "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )S"
    assert linearise(example) == LINE
    assert parse_line(linearise(example, keep_tags=True), DOG) == example


@pytest.mark.parametrize("seed", range(5))
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


@pytest.mark.parametrize(
    ("word", "predicted", "wanted"),
    [("'", ".", "XX"), ("'", "''", "''"), ("-", ":", ":"), ("-", ",", "XX"), ("dog", ":", "XX"), ("$", ".", "XX"),
     ("'", "POS", "POS"), ("...", "XX", ":"), ("``", "''", "``")],
)  # fmt: skip
def test_only_marks_can_have_the_tags_of_punctuation(word: str, predicted: str, wanted: str) -> None:
    found, _ = repair(f"(S XX {predicted} )S", ["dog", word])
    assert found is not None
    assert [leaf.tag for leaf in leaves(found)] == ["XX", wanted]


def test_repaired_hypotheses_are_scored_without_errors() -> None:
    references = ["(S (NP XX )NP (VP XX (NP XX XX )NP )VP . )S", "(S (NP XX )NP (VP XX )VP )S"]
    malformed = "(S (NP XX (VP XX )VP )S"
    signature = score_text([malformed, references[1]], [references], TREES)["bracket_f1"].signature
    assert signature.startswith("evalb|params:COLLINS|len:all|roots:not-counted|sentences:2|errors:1|skipped:0|")
    repaired, counts = repair_all(["dogs eat the cake .", "dogs bark", ""], ["", malformed, "(S XX )S"])
    assert counts == Repairs(missing_brackets=5, surplus_brackets=1, missing_words=5, surplus_words=1, trees=3)
    assert repaired == ["(TOP XX XX XX XX . )TOP", "(S (NP XX (VP XX )VP )NP )S", ""]
    assert "|errors:0|" in score_text(repaired[:2], [references], TREES)["bracket_f1"].signature
    flat = score_text(["(S (NP XX )NP (VP XX XX XX )VP . )S", references[1]], [references], TREES)
    # reference brackets 4 + 3, predicted 3 + 3, all predicted ones are right
    wanted = {
        "bracket_f1": 100 * 12 / 13,
        "bracket_precision": 100,
        "bracket_recall": 100 * 6 / 7,
        "complete_match": 50,
    }
    assert {name: each.score for name, each in flat.items()} == pytest.approx(wanted)
    with pytest.raises(UserError, match="line 2 of the references is not a linearised tree"):
        score_text(references, [[references[0], malformed]], TREES)


def test_symbols_are_whole_pieces_of_the_vocabulary_and_come_back(tmp_path: Path) -> None:
    lines, files = ["(S (NP XX )NP (VP XX )VP . )S", "(S `` XX '' , : )S"], [tmp_path / name for name in "abc"]
    for file, text in zip(files, (lines, lines[::-1], ["a dog"]), strict=True):
        file.write_text("\n".join(text) + "\n")
    model = train_on_symbols(files[:1])
    assert train_on_symbols(files[1:2]) == model
    tokenizer = Tokenizer(train_on_symbols(files[2:]), model)
    pieces = [tokenizer.target_pieces(ids) for ids in tokenizer.encode_target(lines)]
    assert pieces == [[f"▁{symbol}" for symbol in line.split()] for line in lines]
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_target(lines)] == lines
    assert tokenizer.target_size == 4 + len({symbol for line in lines for symbol in line.split()})
    assert tokenizer.encode_target(["(NEW"])[0] == [0]
