"""The whole chain as a user runs it, command after command."""

import json
from pathlib import Path

import pytest

from nmt.config.tree import Config
from nmt.demo import command as demo_command
from nmt.demo import source as demo
from tests.integration.toy import call, refuse, succeed


def test_text_that_was_not_prepared_is_refused(settings: list[str], corpus: Path, whole: Path) -> None:
    toy = [*settings, f"paths.outputs={whole}", "checkpoint=last"]
    valid, test = (f"[{corpus}/{split}.en,{corpus}/{split}.de]" for split in ("valid", "test"))
    assert f"data.test={test}, not {valid}: run `make data`" in refuse(["eval", *toy, f"data.test={valid}"])
    assert f", not {test}: run `make data`" in refuse(["train", *toy, f"data.train={test}"])


def test_demo_runs_the_whole_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SIZES", {"train": 1000, "valid": 20, "test": 20})
    command = [
        "demo", f"paths.data={tmp_path}/data", f"paths.outputs={tmp_path}/outputs", "training.steps=2",
        "training.save_every=1", "training.log_every=1", "training.valid_sentences=2", "averaging.last=2",
        "model.layers=1", "model.d_model=16", "model.d_ff=16", "model.heads=2", "training.batch_tokens=512",
        "decoding.extra_length=0", "decoding.beam=1", "evaluation.splits=[unseen]", "runtime.device=cpu",
        "runtime.precision=fp32", "tokenizer.vocab_size=300",
    ]  # fmt: skip
    lines = succeed(command).splitlines()
    for beginning in ("data: ", "train: ", "averaged ", "unseen: ", "bleu ", "report: ", "done in "):
        assert any(line.startswith(beginning) for line in lines)
    assert len(lines) <= 30
    assert max(len(line) for line in lines if str(tmp_path) not in line) <= 120
    assert f"experiment=demo paths.outputs={tmp_path}/outputs" in lines[-1]
    folder = tmp_path / "outputs" / "demo"
    assert json.loads((folder / "eval" / "unseen.json").read_text())["bleu"]["signature"]
    assert (folder / "report.html").exists()
    again = call(command)
    assert again.returncode == 0, again.stderr
    assert "is finished" in again.stdout


def test_only_the_main_process_shows_the_end_of_a_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr(demo_command, "run_chain", lambda _: {})
    demo_command.run(Config())
    assert capsys.readouterr().out == ""
