"""A mixture through the command line, which reports what it was trained on; `test_plan` resumes its batches."""

import json
from pathlib import Path

import pytest

from tests.integration.test_training import events
from tests.integration.toy import pairs, succeed, write_pairs


def test_a_mixture_goes_through_all_commands(settings: list[str], tmp_path: Path) -> None:
    mixed = [
        *settings,
        *(f"data.mixture.crawled.train={write_pairs(tmp_path / 'crawled', pairs(300, 7))}", "data.weight=3"),
        *("data.mixture.crawled.tag='<crawled>'", "data.mixture.crawled.hold_out=0.05", "training.steps=21"),
        *("training.batch_tokens=300", "training.valid_every=15", "training.save_every=3", "decoding.beam=1"),
        *("evaluation.splits=[test,crawled.test]", f"paths.data={tmp_path}/data", f"paths.outputs={tmp_path}/outputs"),
    ]
    for command in ("data", "train", "average", "eval", "report"):
        succeed([command, *mixed])
    *_, last = events(tmp_path / "outputs", "train")
    assert last["tokens/main"] == pytest.approx(3 * last["tokens/crawled"], rel=0.1)
    valid = events(tmp_path / "outputs", "valid")[-1]
    assert valid["loss/crawled"] != valid["loss"]
    assert {"bleu", "bleu/crawled", "perplexity/crawled"} < {*valid}

    scores = json.loads((tmp_path / "outputs/toy/eval/crawled.test.json").read_text())
    assert scores["split"] == "crawled.test"
    assert "validation, crawled" in (tmp_path / "outputs/toy/report.html").read_text()
