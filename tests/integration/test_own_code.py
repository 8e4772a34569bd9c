"""No file of others names code that is imported, though settings on the command line may."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from nmt.runs.checkpoint import Checkpoint, CheckpointMeta
from nmt.runs.checkpoints import Checkpoints
from tests.integration.toy import refuse


def test_code_that_a_checkpoint_names_is_not_imported(
    whole: Path, settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    forged = tmp_path / "outputs" / "toy"
    shutil.copytree(whole / "toy", forged, symlinks=True)
    last = (forged / "checkpoints" / "last").resolve()
    text = (last / "config.yaml").read_text(encoding="utf-8")
    assert "  activation: relu\n" in text
    Path("in.txt").write_text("the man sees a tree\n", encoding="utf-8")
    for step in (41, 42):
        Checkpoints(forged).save(
            Checkpoint(
                meta=CheckpointMeta(step=step),
                weights=load_file(last / "model.safetensors"),
                trainer=torch.load(last / "trainer.pt", weights_only=True),
                tokenizer_files={each.name: each.read_bytes() for each in last.glob("tokenizer*")},
                config_text=text.replace("  activation: relu\n", "  activation: mine:Lion\n"),
            )
        )
    given = [*settings, "paths.outputs=outputs", "checkpoint=last", "input=in.txt"]
    tuned = [*(word for word in given if not word.startswith("model.")), "name=new"]
    tuned.append(f"training.init_from={forged / 'checkpoints' / 'last'}")
    for command in (*([name, *given] for name in ("train", "translate", "eval", "export")), ["train", *tuned]):
        assert "mine:Lion" in refuse(command)
