"""Training in fp16 against fp32, and the scale that keeps its gradients in range."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nmt.config.model import ModelConfig
from nmt.data.loader import GlobalBatch
from nmt.data.store import PairStore
from nmt.training.loss_scale import GROWTH_STEPS, INITIAL_SCALE, LossScale
from nmt.training.trainer import Trainer
from tests.unit.training.test_trainer import TRAINING, batches_of, store, trainer, training_with, weights

__all__ = ["store"]
FP16 = torch.float16
MODEL = ModelConfig(layers=2, d_model=32, d_ff=64, heads=2, dropout=0.0)
LEARNING = replace(TRAINING, learning_rate=3e-3, schedule="cosine", adam_eps=1e-9)


def scale_of(ours: Trainer) -> float:
    assert ours.loss_scale is not None
    return float(ours.loss_scale.scale)


def losses(ours: Trainer, batches: list[GlobalBatch]) -> list[float]:
    found = []
    for batch in batches:
        ours.update(batch)
        found.append(ours.take_statistics().loss)
    return found


@pytest.mark.parametrize(("positions", "placement"), [("sinusoidal", "post"), ("relative", "pre")])
def test_losses_follow_those_of_fp32(store: PairStore, positions: str, placement: str) -> None:
    batches = batches_of(store, LEARNING, 25)
    model = replace(MODEL, positions=positions, norm_placement=placement)
    exact, found = (losses(trainer(LEARNING, model, precision=each), batches) for each in (torch.float32, FP16))
    assert exact[0] - min(exact) > 0.2  # it has learned
    np.testing.assert_allclose(found, exact, rtol=5e-3)


@pytest.mark.parametrize(
    ("settings", "parallel"),
    [({"optimizer": "muon"}, 1), ({"clip_norm": 0.1}, 1), ({"device_tokens": 20}, 1), ({"clip_norm": 0.1}, 2)],
    ids=str,
)
def test_gradients_are_not_scaled_outside_the_backward_pass(
    store: PairStore, settings: dict[str, Any], parallel: int
) -> None:
    training = training_with(LEARNING, **settings)
    ours, exact = (trainer(training, MODEL, parallel, each) for each in (FP16, torch.float32))
    for batch in batches_of(store, training, 3):
        ours.update(batch)
        exact.update(batch)
        assert float(ours.gradient_norm) == pytest.approx(float(exact.gradient_norm), rel=1e-2)
    steps = ours.learning_rate * 3  # Adam's, each at most as long as the learning rate
    for name, value in weights(exact).items():
        if value.dim() > 1:  # the gradient of the keys' biases is 0 but for rounding, of which Adam makes whole steps
            assert (weights(ours)[name] - value).abs().mean() < 0.1 * steps, name


def test_an_overflow_skips_one_update_and_halves_the_scale_and_is_no_bad_step(store: PairStore) -> None:
    ours = trainer(LEARNING, MODEL, precision=FP16)
    first, bad, last = batches_of(store, LEARNING, 3)
    ours.update(first)
    before, moments = weights(ours), str(ours.optimizer.state_dict()["state"])
    overflow = next(iter(ours.model.parameters())).register_hook(lambda gradient: gradient * math.inf)
    ours.update(bad)
    overflow.remove()
    assert scale_of(ours) == INITIAL_SCALE / 2
    assert all(torch.equal(value, before[name]) for name, value in weights(ours).items())
    assert str(ours.optimizer.state_dict()["state"]) == moments
    assert ours.take_statistics().skipped == 1
    assert ours.bad_steps.check() == ""
    ours.update(last)
    assert not all(torch.equal(value, before[name]) for name, value in weights(ours).items())


def test_steps_that_a_lower_scale_cannot_mend_are_bad(store: PairStore) -> None:
    ours = trainer(LEARNING, MODEL, precision=FP16)
    assert ours.loss_scale is not None
    ours.loss_scale.scale = torch.tensor(2.0)
    next(iter(ours.model.parameters())).register_hook(lambda gradient: gradient * math.nan)
    for batch, bad in zip(batches_of(store, LEARNING, 2), (False, True), strict=True):
        ours.update(batch)
        assert bool(ours.bad_steps.check()) == bad


def test_the_scale_doubles_after_many_good_steps_in_a_row() -> None:
    def adapted(finite: list[bool]) -> float:
        ours = LossScale(torch.device("cpu"))
        for each in finite:
            ours.update(torch.tensor(each))
        return float(ours.scale)

    assert adapted([True] * (GROWTH_STEPS - 1)) == INITIAL_SCALE
    assert adapted([True] * GROWTH_STEPS) == 2 * INITIAL_SCALE
    interrupted = [True] * (GROWTH_STEPS - 1) + [False] + [True] * (GROWTH_STEPS - 1)
    assert adapted(interrupted) == INITIAL_SCALE / 2
    assert adapted([*interrupted, True]) == INITIAL_SCALE
