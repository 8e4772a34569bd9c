"""eval/<split>.json is read back as it was written, and a split only if it is what was prepared."""

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.config.data import DataConfig
from nmt.config.decoding import DecodingConfig
from nmt.config.tree import Config, PathsConfig
from nmt.errors import UserError
from nmt.evaluation.alignment_error import AlignmentScore
from nmt.evaluation.metrics import Score
from nmt.evaluation.record import EvaluationRecord, read_evaluation, write_evaluation
from nmt.evaluation.split import read_split
from nmt.runs.checkpoint import CheckpointRecord
from nmt.storage.files import checksum, seal, write_json

MEMBER = CheckpointRecord("last", 9, "cd", "outputs/other/last")
CHECKPOINT = CheckpointRecord("averaged", 9, "ab", "outputs/x/averaged", averaged_from=("a", "b"), ensemble=(MEMBER,))


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = EvaluationRecord(
        split="test", scores={"bleu": Score(0.0, "bleu|v:1"), "ter": Score(2.0, "ter")}, sentences=3, seconds=1.5,
        sentences_per_second=2.0, nll=0.5, perplexity=1.6, corpus="toy", languages=("en", "de"),
        decoding=DecodingConfig(beam=7), engine="ctranslate2", machine="cpu", processes=2, checkpoint=CHECKPOINT,
        alignments=AlignmentScore(25.0, 80.0, 70.0),
    )  # fmt: skip
    write_evaluation(tmp_path / "test.json", record)
    assert read_evaluation(tmp_path / "test.json") == record
    content = json.loads((tmp_path / "test.json").read_text(encoding="utf-8"))
    assert content["alignments"] == {"error_rate": 25.0, "precision": 80.0, "recall": 70.0}
    assert record.remarks() == ["word alignments of the references: error rate 25.0%, precision 80.0%, recall 70.0%"]
    assert content["bleu"] == {"score": 0.0, "signature": "bleu|v:1"}
    assert content["decoding"]["beam"] == 7


def scored(**changes: Any) -> dict[str, Any]:
    """Return the content of a file that holds nothing but a score."""
    return {"split": "test", "bleu": {"score": 1, "signature": "s"}, **changes}


def test_files_of_other_versions_are_read(tmp_path: Path) -> None:
    file = tmp_path / "test.json"
    file.write_text(json.dumps(scored(decoding={"beam": 2, "of_another_version": 1})))
    record = read_evaluation(file)
    assert record.decoding == DecodingConfig(beam=2)
    assert (record.scores, record.perplexity, record.checkpoint) == ({"bleu": Score(1.0, "s")}, None, None)


@pytest.mark.parametrize(
    "content",
    [[], {}, "text", scored(bleu=1), scored(bleu={"score": "x", "signature": ""}), scored(checkpoint={"name": "a"}),
     scored(decoding={"beam": "many"}), scored(decoding={"beam": 0})],
    ids=str,
)  # fmt: skip
def test_a_file_without_scores_is_refused_in_one_line(tmp_path: Path, content: object) -> None:
    (tmp_path / "test.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"test.json holds no scores: run `make eval`|decoding.beam"):
        read_evaluation(tmp_path / "test.json")


def test_a_split_is_read_unless_it_changed_since_preparation(tmp_path: Path) -> None:
    config = Config(paths=PathsConfig(data=str(tmp_path)), data=DataConfig(corpus="toy"))
    folder = tmp_path / "toy"
    folder.mkdir()
    files = {language: folder / f"test.{language}" for language in ("en", "de")}
    for language, file in files.items():
        file.write_text(f"a sentence of {language}\n")
    outputs = {file.name: checksum(file) for file in files.values()}
    content = {"steps": {"collect test": {"inputs": {}, "outputs": outputs, "result": {}}}}
    write_json(folder / "manifest.json", {**content, "seal": seal(content)})
    split = read_split(config.data_folder, config.data, "test")
    assert (split.sources, split.references) == (["a sentence of en"], ["a sentence of de"])
    files["de"].write_text("a sentance of de\n")
    with pytest.raises(UserError, match=r"test\.de is not what was prepared: run `make data`"):
        read_split(config.data_folder, config.data, "test")
