"""The whole chain as a user runs it, command after command."""

import json
import shutil
from pathlib import Path

import pytest

from nmt.demo import source as demo
from tests.integration.toy import call, refuse, run, succeed


@pytest.fixture(scope="session")
def averaged(settings: list[str], whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    outputs = tmp_path_factory.mktemp("averaged")
    shutil.copytree(whole / "toy", outputs / "toy", symlinks=True)
    said = succeed(["average", *settings, f"paths.outputs={outputs}"])
    assert "step-00000030" in said
    assert "step-00000040" in said
    return outputs


def test_text_that_was_not_prepared_is_refused(settings: list[str], corpus: Path, whole: Path) -> None:
    toy = [*settings, f"paths.outputs={whole}", "checkpoint=last"]
    valid, test = (f"[{corpus}/{split}.en,{corpus}/{split}.de]" for split in ("valid", "test"))
    assert f"data.test={test}, not {valid}: run `make data`" in refuse(["eval", *toy, f"data.test={valid}"])
    assert f", not {test}: run `make data`" in refuse(["train", *toy, f"data.train={test}"])


def test_every_score_of_eval_has_a_signature(settings: list[str], averaged: Path) -> None:
    said = succeed(["eval", *settings, f"paths.outputs={averaged}"])
    scores = json.loads((averaged / "toy" / "eval" / "test.json").read_text())
    for name in ("bleu", "bleu_paper", "chrf", "ter"):
        assert f"{scores[name]['score']:.2f}" in said
        assert scores[name]["signature"] in said
    assert scores["sentences"] == 40
    assert scores["checkpoint"]["name"] == "averaged"
    assert len((averaged / "toy" / "eval" / "test.hyp.txt").read_text().splitlines()) == 40


def test_translate_keeps_the_number_and_order_of_lines(
    settings: list[str], averaged: Path, corpus: Path, tmp_path: Path
) -> None:
    lines = (corpus / "test.en").read_text().splitlines()[:10]
    lines.insert(3, "")
    same = [*settings, f"paths.outputs={averaged}"]
    through_pipe = run(["translate", *same], input="".join(line + "\n" for line in lines))
    assert through_pipe.returncode == 0, through_pipe.stderr
    translations = through_pipe.stdout.split("\n")
    assert len(translations) == 12
    assert [index for index, line in enumerate(translations) if not line] == [3, 11]
    file = tmp_path / "in.txt"
    file.write_text("".join(line + "\n" for line in lines))
    through_file = call(["translate", *same, f"input={file}", f"output={tmp_path / 'out.txt'}"])
    assert through_file.returncode == 0, through_file.stderr
    assert (tmp_path / "out.txt").read_text() == through_pipe.stdout


def test_eval_without_an_average_names_the_command_to_run(settings: list[str], tmp_path: Path) -> None:
    error = refuse(["eval", *settings, f"paths.outputs={tmp_path}"])
    assert "make train" in error


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
    folder = tmp_path / "outputs" / "demo"
    assert json.loads((folder / "eval" / "unseen.json").read_text())["bleu"]["signature"]
    assert (folder / "report.html").exists()
    again = call(command)
    assert again.returncode == 0, again.stderr
    assert "is finished" in again.stdout
