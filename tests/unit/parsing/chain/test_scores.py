"""Scores of linearised trees: which metrics apply, what their signatures say, and what is refused."""

import json
from pathlib import Path

import pytest

from nmt.config.data import TREES
from nmt.errors import UserError
from nmt.evaluation.metrics import Score, score
from nmt.evaluation.record import EvaluationRecord, read_evaluation, write_evaluation
from nmt.evaluation.split import read_split
from nmt.parsing.linearise import Repairs, repair_all

REFERENCES = ["(S (NP XX )NP (VP XX (NP XX XX )NP )VP . )S", "(S (NP XX )NP (VP XX )VP )S"]
FLAT = "(S (NP XX )NP (VP XX XX XX )VP . )S"
MALFORMED = "(S (NP XX (VP XX )VP )S"


def test_trees_have_scores_of_their_own() -> None:
    scores = score([FLAT, REFERENCES[1]], REFERENCES, TREES)
    # reference brackets 4 + 3, predicted 3 + 3, all predicted ones are right
    assert scores["bracket_precision"].score == 100
    assert scores["bracket_recall"].score == pytest.approx(100 * 6 / 7)
    assert scores["bracket_f1"].score == pytest.approx(100 * 12 / 13)
    assert scores["complete_match"].score == 50
    assert list(scores) == ["bracket_f1", "bracket_precision", "bracket_recall", "complete_match"]


def test_text_has_no_scores_of_trees() -> None:
    assert not any(name.startswith("bracket") for name in score(["ein Hund"], ["ein Hund"], "de"))


def test_signature_says_how_brackets_are_counted_and_how_many_sentences_are_errors() -> None:
    signature = score([MALFORMED, REFERENCES[1]], REFERENCES, TREES)["bracket_f1"].signature
    assert signature.startswith("evalb|params:COLLINS|len:all|roots:not-counted|sentences:2|errors:1|skipped:0|")


def test_malformed_reference_is_refused() -> None:
    with pytest.raises(UserError, match="line 2 of the references is not a linearised tree"):
        score(REFERENCES, [REFERENCES[0], MALFORMED], TREES)


def test_repaired_hypotheses_are_scored_without_errors() -> None:
    sources = ["dogs eat the cake .", "dogs bark"]
    repaired, counts = repair_all(sources, ["", MALFORMED])
    assert counts == Repairs(missing_brackets=3, missing_words=5, trees=2)
    assert repaired == ["(TOP XX XX XX XX . )TOP", "(S (NP XX (VP XX )VP )NP )S"]
    assert "|errors:0|" in score(repaired, REFERENCES, TREES)["bracket_f1"].signature


def test_record_of_trees_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = EvaluationRecord(
        split="test",
        scores={"bracket_f1": Score(95.5, "evalb|x")},
        languages=("en", TREES),
        repairs=Repairs(1, 2, 3, 4, 2),
    )
    write_evaluation(tmp_path / "test.json", record)
    assert read_evaluation(tmp_path / "test.json") == record
    assert json.loads((tmp_path / "test.json").read_text())["repairs"]["surplus_words"] == 4


@pytest.mark.parametrize("tree", ["(S XX XX )S", "(S XX XX XX XX )S", "(S XX XX XX", "XX XX XX"])
def test_tree_that_does_not_fit_its_sentence_is_refused(tmp_path: Path, tree: str) -> None:
    (tmp_path / "test.en").write_text("a dog barks\na dog barks\n")
    (tmp_path / f"test.{TREES}").write_text(f"(S (NP XX XX )NP (VP XX )VP )S\n{tree}\n")
    with pytest.raises(UserError, match=r"line 2 of .*test.trees: the tree has not exactly the 3 words"):
        read_split(tmp_path, "test", ("en", TREES))
