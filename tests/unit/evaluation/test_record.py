"""eval/<split>.json is read back as it was written, in this form and in earlier ones."""

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.config.decoding import DecodingConfig
from nmt.errors import UserError
from nmt.evaluation.alignment_error import AlignmentScore
from nmt.evaluation.metrics import Score
from nmt.evaluation.record import REQUIRED_OF_TEXT, EvaluationRecord, read_evaluation, write_evaluation
from nmt.runs.checkpoint import CheckpointRecord

SCORES = {name: Score(float(value), f"{name}|v:1") for value, name in enumerate(REQUIRED_OF_TEXT)}
MEMBER = CheckpointRecord("last", 9, "cd", "outputs/other/last")
CHECKPOINT = CheckpointRecord("averaged", 9, "ab", "outputs/x/averaged", averaged_from=("a", "b"), ensemble=(MEMBER,))


def earlier(**changes: Any) -> dict[str, Any]:
    """The content of a file that holds nothing but scores."""
    return {
        "split": "test",
        **{name: {"score": 1.5, "signature": "s"} for name in REQUIRED_OF_TEXT},
        **changes,
    }


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = EvaluationRecord(
        split="test", scores=SCORES, sentences=3, seconds=1.5, sentences_per_second=2.0, nll=0.5, perplexity=1.6,
        corpus="toy", languages=("en", "de"), decoding=DecodingConfig(beam=7), engine="ctranslate2", machine="cpu",
        processes=2, checkpoint=CHECKPOINT,
        alignments=AlignmentScore(25.0, 80.0, 70.0),
    )  # fmt: skip
    write_evaluation(tmp_path / "test.json", record)
    assert read_evaluation(tmp_path / "test.json") == record
    content = json.loads((tmp_path / "test.json").read_text(encoding="utf-8"))
    assert content["alignments"] == {"error_rate": 25.0, "precision": 80.0, "recall": 70.0}
    assert record.remarks() == ["word alignments of the references: error rate 25.0%, precision 80.0%, recall 70.0%"]
    assert content["bleu"] == {"score": 0.0, "signature": "bleu|v:1"}
    assert content["decoding"]["beam"] == 7
    assert content["checkpoint"] == {
        "name": "averaged", "step": 9, "sha256": "ab", "path": "outputs/x/averaged", "averaged_from": ["a", "b"],
        "ensemble": [{"name": "last", "step": 9, "sha256": "cd", "path": "outputs/other/last"}],
    }  # fmt: skip


def test_files_of_other_versions_are_read(tmp_path: Path) -> None:
    file = tmp_path / "test.json"
    decoding = {"beam": 2, "of_another_version": 1}
    file.write_text(json.dumps(earlier(decoding=decoding, comet={"score": 1, "signature": ""})))
    record = read_evaluation(file)
    assert record.decoding == DecodingConfig(beam=2)
    assert record.scores["comet"] == Score(1.0, "")
    assert (record.perplexity, record.checkpoint, record.engine) == (None, None, "torch")


@pytest.mark.parametrize(
    "content",
    [[], {}, "text", earlier(bleu=1), earlier(ter={"score": "x", "signature": ""}), earlier(checkpoint={"name": "a"}),
     earlier(decoding={"beam": "many"}), earlier(decoding={"beam": 0})],
    ids=str,
)  # fmt: skip
def test_a_file_without_scores_is_refused_in_one_line(tmp_path: Path, content: object) -> None:
    (tmp_path / "test.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"test.json holds no scores: run `make eval`|decoding.beam"):
        read_evaluation(tmp_path / "test.json")
