"""The moving average of the weights against a plain sum, and what is validated with it."""

import numpy as np
import pytest
import torch

from nmt.compute.machine import Machine
from nmt.data.loader import assemble
from nmt.data.store import PairStore
from nmt.model.build import build_model
from nmt.training.trainer import Trainer
from nmt.training.validation import held_out_loss
from tests.unit.training.test_checkpointing import same
from tests.unit.training.test_trainer import (
    MODEL,
    TRAINING,
    VOCABULARY,
    batches_of,
    store,
    trainer,
    training_with,
    weights,
    without_finite_gradient,
)

__all__ = ["store"]
EMA = training_with(ema=0.3)


def test_the_average_is_a_weighted_sum_of_all_weights_so_far_and_training_does_not_change(store: PairStore) -> None:
    ours, plain = trainer(EMA), trainer()
    expected = weights(ours)
    for step, batch in enumerate(batches_of(store, EMA, 6), start=1):
        if step == 4:
            with without_finite_gradient(ours), without_finite_gradient(plain):
                ours.update(batch)
                plain.update(batch)
        else:
            ours.update(batch)
            plain.update(batch)
            decay = min(0.3, (1 + step) / (10 + step))
            expected = {name: decay * expected[name] + (1 - decay) * now for name, now in weights(ours).items()}
        for name, average in ours.weights().items():
            torch.testing.assert_close(average, expected[name], rtol=1e-6, atol=1e-7)
        with pytest.raises(KeyboardInterrupt), ours.evaluating():
            raise KeyboardInterrupt
        assert same(weights(ours), weights(plain))
    assert not same(ours.weights(), weights(ours))
    assert same(plain.weights(), weights(plain))


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_held_out_text_is_read_with_the_average(store: PairStore, precision: torch.dtype) -> None:
    machine = Machine(torch.device("cpu"), precision)
    ours, reader = (
        Trainer(build_model(MODEL, VOCABULARY, VOCABULARY), config, machine, seed=1, parallel=1)
        for config in (EMA, TRAINING)
    )
    batches = [assemble(store, np.arange(20))]
    for batch in batches_of(store, EMA, 3):
        ours.update(batch)
        with ours.evaluating():
            averaged = held_out_loss(ours.working_weights, batches, EMA, machine.device)
        current = held_out_loss(ours.working_weights, batches, EMA, machine.device)
        for expected, state in ((averaged, ours.weights()), (current, weights(ours))):
            reader.model.load_state_dict(state)
            assert held_out_loss(reader.working_weights, batches, EMA, machine.device) == expected
        assert averaged != current
