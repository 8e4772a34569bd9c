"""`nmt data` on the same corpus changes nothing about a training that has begun."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.cli import main
from nmt.runs.checkpoint import load
from nmt.training.trainer import Trainer
from tests.integration.test_training import events, losses
from tests.integration.toy import pairs, succeed, write_pairs
from tests.quick_processes import Running


def prepare_other_text(settings: list[str], data: Path) -> None:
    """Prepare other text of the same corpus, in another process."""
    sizes = {"train": 600, "valid": 40}
    files = (
        f"data.{split}={write_pairs(data.parent / split, [pair[::-1] for pair in pairs(count, count)])}"
        for split, count in sizes.items()
    )
    before = (data / "toy" / "tokenizer.model").read_bytes()
    done = Running(main, ["data", *settings, *files]).wait()
    assert done.returncode == 0, done.stderr
    assert (data / "toy" / "tokenizer.model").read_bytes() != before


def test_training_keeps_the_tokenizer_and_the_text_that_it_began_with(
    settings: list[str],
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared = next(Path(each.partition("=")[2]) for each in settings if each.startswith("paths.data="))
    own = [each for each in settings if not each.startswith("paths.data=")] + [f"paths.data={tmp_path}/data"]
    shutil.copytree(prepared, tmp_path / "data")
    update = Trainer.update

    def update_after_replacement(trainer: Trainer, *batch: Any) -> Any:
        if trainer.step == 5:
            prepare_other_text(own, tmp_path / "data")
        return update(trainer, *batch)

    monkeypatch.setattr(Trainer, "update", update_after_replacement)
    succeed(["train", *own, f"paths.outputs={tmp_path}"])

    assert losses(tmp_path) == losses(whole)
    figures, expected = ([(each["loss"], each["bleu"]) for each in events(run, "valid")] for run in (tmp_path, whole))
    assert figures == expected
    for step in (10, 40):
        saved, same = (load(run / "toy" / "checkpoints" / f"step-{step:08}") for run in (tmp_path, whole))
        assert saved.tokenizer_files == same.tokenizer_files
        assert saved.tokenizer_files["tokenizer.model"] == (prepared / "toy" / "tokenizer.model").read_bytes()
        assert all(torch.equal(saved.weights[name], same.weights[name]) for name in same.weights)
