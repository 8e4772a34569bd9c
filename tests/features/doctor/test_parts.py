"""The time of each part of a step, by a clock that only the parts themselves advance."""

from collections.abc import Callable
from itertools import islice
from types import SimpleNamespace
from typing import cast

import pytest
import torch
from torch import nn

from nmt.compute.machine import Machine
from nmt.config.schema import Config, DataConfig, ModelConfig, RuntimeConfig, TrainingConfig
from nmt.data.synthetic import synthetic_pairs
from nmt.estimate.operation import Part
from nmt.features.doctor import parts
from nmt.measuring.steps import measured_batches
from nmt.training.new_trainer import new_trainer
from nmt.training.objective import Objective

WORDS = 50


@pytest.mark.parametrize("device_tokens", [0, 100])
def test_each_part_has_the_time_that_passes_in_it(monkeypatch: pytest.MonkeyPatch, device_tokens: int) -> None:
    config = Config(
        model=ModelConfig(layers=1, d_model=16, d_ff=32, heads=2),
        training=TrainingConfig(batch_tokens=200, device_tokens=device_tokens),
        data=DataConfig(max_pieces=20),
        runtime=RuntimeConfig(device="cpu", parallel=1),
    )
    trainer = new_trainer(config, Machine(torch.device("cpu"), torch.float32), WORDS, WORDS)
    batches = list(islice(measured_batches(trainer, synthetic_pairs(WORDS, WORDS, pairs=200, max_length=20)), 2))
    objective, now = cast(Objective, trainer.replicas.objective), [0.0]

    def take(seconds: float) -> Callable[..., None]:
        def advance(*_: object) -> None:
            now[0] += seconds

        return advance

    monkeypatch.setattr(parts, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    loss = type(objective.word_loss).__call__
    monkeypatch.setattr(type(objective.word_loss), "__call__", lambda *each: (take(10)(), loss(*each))[1])
    cast(nn.Module, trainer.model).register_forward_hook(take(1))
    last_in_backward = next(trainer.model.parameters())
    last_in_backward.register_post_accumulate_grad_hook(take(1000))
    trainer.optimizer.register_step_pre_hook(take(100_000))
    found = parts.part_seconds(trainer, batches)
    micro_batches = sum(len(batch.micro_batches) for batch in batches) / 2
    assert (micro_batches > 1) == bool(device_tokens)
    assert found == {
        Part.FORWARD: micro_batches,
        Part.LOSS: 10 * micro_batches,
        Part.BACKWARD: 1000 * micro_batches,
        Part.OPTIMIZER: 100_000,
    }
    assert type(objective.word_loss).__name__ == "CrossEntropy"
