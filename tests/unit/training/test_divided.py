"""What cannot work with divided weights is refused."""

from pathlib import Path
from typing import cast

import pytest

from nmt.cli import main
from nmt.config.training import TrainingConfig
from nmt.errors import UserError
from nmt.training.divided import DividedWeights
from nmt.training.memory_check import tokens_that_fit
from nmt.training.trainer import Trainer
from tests.integration.toy import refuse
from tests.unit.training.test_memory_check import SmallMemoryTrainer, store


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
