"""A mixture through the command line, which reports what it was trained on; `test_plan` resumes its batches."""

import json
from pathlib import Path

import pytest

from tests.integration.test_training import events
from tests.integration.toy import pairs, succeed


@pytest.fixture
def settings(tmp_path: Path) -> list[str]:
    for seed, (name, count) in enumerate((("train", 150), ("valid", 12), ("crawled", 300))):
        for side, language in enumerate(("en", "de")):
            lines = [pair[side] for pair in pairs(count, seed)]
            (tmp_path / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines))
    files = {name: f"[{tmp_path}/{name}.en,{tmp_path}/{name}.de]" for name in ("train", "valid", "crawled")}
    return [
        *("data=files", "data.corpus=toy", f"data.train={files['train']}", f"data.valid={files['valid']}"),
        *(f"data.test={files['valid']}", f"data.mixture.crawled.train={files['crawled']}", "data.max_pieces=40"),
        *("data.mixture.crawled.tag='<crawled>'", "data.mixture.crawled.hold_out=0.05", "data.weight=3"),
        *("tokenizer.vocab_size=80", "name=toy"),
        *("model.layers=1", "model.d_model=16", "model.d_ff=32", "model.heads=2", "model.dropout=0.1"),
        *("training.steps=21", "training.batch_tokens=300", "training.warmup_steps=4", "training.learning_rate=5e-3"),
        *("training.save_every=3", "training.valid_every=15", "training.valid_sentences=2", "training.log_every=1"),
        *("averaging.last=2", "decoding.beam=1", "decoding.extra_length=5", "evaluation.splits=[test,crawled.test]"),
        *("runtime.threads=1", "runtime.workers=1", "runtime.device=cpu", "runtime.precision=fp32"),
        *("tracking=none", f"paths.data={tmp_path}/data", f"paths.outputs={tmp_path}/outputs"),
    ]


def test_a_mixture_goes_through_all_commands(settings: list[str], tmp_path: Path) -> None:
    for command in ("data", "train", "average", "eval", "report"):
        succeed([command, *settings])
    *_, last = events(tmp_path / "outputs", "train")
    assert last["tokens/main"] == pytest.approx(3 * last["tokens/crawled"], rel=0.1)
    valid = events(tmp_path / "outputs", "valid")[-1]
    assert valid["loss/crawled"] != valid["loss"]
    assert {"bleu", "bleu/crawled", "perplexity/crawled"} < {*valid}

    scores = json.loads((tmp_path / "outputs/toy/eval/crawled.test.json").read_text())
    assert scores["split"] == "crawled.test"
    assert "validation, crawled" in (tmp_path / "outputs/toy/report.html").read_text()
