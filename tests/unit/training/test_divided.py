"""Divided weights learn, save and resume as whole ones do, and what cannot work with them is refused."""

from pathlib import Path
from typing import cast

import pytest
import torch

from nmt.cli import main
from nmt.config.training import TrainingConfig
from nmt.errors import UserError
from nmt.training.divided import DividedWeights
from nmt.training.memory_check import tokens_that_fit
from nmt.training.trainer import Trainer
from tests.integration.test_training import events, losses, weights
from tests.integration.toy import refuse, succeed
from tests.quick_processes import run_together
from tests.unit.training.test_memory_check import SmallMemoryTrainer, store


def test_a_run_with_divided_weights_is_that_of_one_process_and_resumes_there(
    settings: list[str], tmp_path: Path
) -> None:
    comparable = [*settings, "model.dropout=0", "training.adam_eps=1e-5", "training.steps=20"]
    alone, divided = tmp_path / "alone", tmp_path / "divided"
    succeed(["train", *comparable, f"paths.outputs={alone}"])
    command = ["train", *comparable, f"paths.outputs={divided}"]
    done = run_together([*command, "training.steps=10", "training.valid_every=10", "runtime.shard=weights"], 2)
    assert done.returncode == 0, done.stderr
    assert "going on from step 10" in succeed(command)
    for first, second in zip(losses(alone), losses(divided), strict=True):
        assert second == pytest.approx(first, rel=1e-4)
    assert events(divided, "valid")[-1]["loss"] == pytest.approx(events(alone, "valid")[-1]["loss"], rel=1e-4)
    assert all(line["bleu"] >= 0 for line in events(divided, "valid"))
    expected, found = weights(alone, 20), weights(divided, 20)
    assert list(found) == list(expected)
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("shard", "chosen", "message"),
    [
        ("weights", "runtime.compile=true", "runtime.shard=weights cannot be used with runtime.compile=true"),
        ("weights", "training.optimizer=muon", "runtime.shard=weights cannot be used with training.optimizer=muon"),
        ("weigths", "seed=1", "runtime.shard=weigths is not one of none, weights"),
    ],
)
def test_what_needs_whole_weights_is_refused(
    shard: str, chosen: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["describe", "runtime.device=cpu", f"runtime.shard={shard}", chosen]) == 2
    assert message in capsys.readouterr().err


def test_a_single_process_has_nothing_to_divide(settings: list[str], tmp_path: Path) -> None:
    error = refuse(["train", *settings, "runtime.shard=weights", f"paths.outputs={tmp_path}"])
    assert "there is only one: start several with torchrun, or leave it out" in error


class Divided(SmallMemoryTrainer):
    """A trainer of divided weights with little memory."""

    replicas = DividedWeights


def test_a_batch_that_does_not_fit_ends_the_run_because_others_wait() -> None:
    tried = cast(Trainer, Divided(10, TrainingConfig(batch_tokens=300)))
    with pytest.raises(UserError, match=r"lower training\.device_tokens, or start more processes"):
        tokens_that_fit(tried, store(), longest_sentence=31)
