"""Code of the user by `module:name`: an own optimizer trains, and no file of others names code."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from nmt.runs.checkpoint import Checkpoint, CheckpointMeta
from nmt.runs.checkpoints import Checkpoints
from tests.integration.toy import refuse, succeed

LION = """
import torch
from torch import nn


class Lion(torch.optim.Optimizer):
    def __init__(self, model: nn.Module, config: object, precision: torch.dtype) -> None:
        super().__init__(list(model.parameters()), {"lr": 0.0, "momentum": 0.9})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            for weight in group["params"]:
                average = self.state[weight].setdefault("average", torch.zeros_like(weight))
                average.lerp_(weight.grad, 0.1)
                weight.sub_(average.sign(), alpha=group["lr"])
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "mine.py").write_text(LION, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    path = sys.path[:]
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("mine", None)


def test_an_optimizer_in_a_file_of_the_working_folder_trains_and_resumes(here: Path, settings: list[str]) -> None:
    words = [*settings, "training.optimizer=mine:Lion", "training.learning_rate=1e-3", "paths.outputs=outputs"]
    succeed(["train", *words, "training.steps=10"])
    assert "going on from step 10" in succeed(["train", *words, "training.steps=20"])


def test_code_that_a_checkpoint_names_is_not_imported(here: Path, whole: Path, settings: list[str]) -> None:
    forged = here / "outputs" / "toy"
    shutil.copytree(whole / "toy", forged, symlinks=True)
    last = (forged / "checkpoints" / "last").resolve()
    text = (last / "config.yaml").read_text(encoding="utf-8")
    assert "  activation: relu\n" in text
    (here / "in.txt").write_text("the man sees a tree\n", encoding="utf-8")
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
    assert "mine" not in sys.modules
