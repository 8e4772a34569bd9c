"""A mixture through the command line: it is killed and resumed exactly, and reports what it was trained on."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from nmt.cli import main
from nmt.training.checkpointing import CheckpointManager
from tests.integration.test_training import events
from tests.integration.toy import pairs, succeed
from tests.quick_processes import Running


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
        *("tracking=none", f"paths.data={tmp_path}/data"),
    ]


def trained(outputs: Path) -> list[dict[str, Any]]:
    """Return the figures of all train and valid events that do not depend on time."""
    times = ("time", "seconds", "tokens_per_second")
    return [
        {key: value for key, value in event.items() if key not in times}
        for kind in ("train", "valid")
        for event in events(outputs, kind)
    ]


def train_until(step: int, command: list[str]) -> int:
    """Run a command that is killed when it saves a step."""
    save = CheckpointManager.save

    def fatal(self: CheckpointManager, state: Any, valid: Any, *, interim: bool, only_best: bool = False) -> None:
        if state.trainer.step >= step:
            os.kill(os.getpid(), signal.SIGKILL)
        save(self, state, valid, interim=interim, only_best=only_best)

    CheckpointManager.save = fatal  # type: ignore[method-assign] # in a process of its own
    return main(command)


def test_killed_mixture_resumes_with_the_same_result(settings: list[str], tmp_path: Path) -> None:
    succeed(["data", *settings])
    whole, resumed = ([*settings, f"paths.outputs={tmp_path}/{name}"] for name in ("whole", "resumed"))
    succeed(["train", *whole])
    assert Running(train_until, 12, ["train", *resumed]).wait().returncode == -signal.SIGKILL
    succeed(["train", *resumed])
    assert trained(tmp_path / "resumed") == trained(tmp_path / "whole")
    weights = [tmp_path / name / "toy/checkpoints/step-00000021/model.safetensors" for name in ("whole", "resumed")]
    assert weights[0].read_bytes() == weights[1].read_bytes()

    *_, last = events(tmp_path / "whole", "train")
    assert last["tokens/main"] == pytest.approx(3 * last["tokens/crawled"], rel=0.1)
    valid = events(tmp_path / "whole", "valid")[-1]
    assert valid["loss/crawled"] != valid["loss"]
    assert {"bleu", "bleu/crawled", "perplexity/crawled"} < {*valid}

    for command in ("average", "eval", "report"):
        succeed([command, *whole])
    scores = json.loads((tmp_path / "whole/toy/eval/crawled.test.json").read_text())
    assert scores["split"] == "crawled.test"
    assert "validation, crawled" in (tmp_path / "whole/toy/report.html").read_text()
