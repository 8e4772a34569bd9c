"""The moving average of the weights against a plain sum, and what is validated, saved and resumed with it."""

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
)

__all__ = ["store"]
EMA = training_with(ema=0.3)


def test_the_average_is_a_weighted_sum_of_all_weights_so_far(store: PairStore) -> None:
    ours = trainer(EMA)
    expected = weights(ours)
    for step, batch in enumerate(batches_of(store, EMA, 6), start=1):
        bad = step == 4
        hook = next(ours.model.parameters()).register_hook(lambda gradient: gradient * torch.nan)
        if not bad:
            hook.remove()
        ours.update(batch)
        hook.remove()
        if not bad:
            decay = min(0.3, (1 + step) / (10 + step))
            expected = {name: decay * expected[name] + (1 - decay) * now for name, now in weights(ours).items()}
        for name, average in ours.weights().items():
            torch.testing.assert_close(average, expected[name], rtol=1e-6, atol=1e-7)
    assert not same(ours.weights(), weights(ours))


def test_training_itself_does_not_change(store: PairStore) -> None:
    averaging, plain = trainer(EMA), trainer()
    for batch in batches_of(store, EMA, 4):
        averaging.update(batch)
        plain.update(batch)
        with pytest.raises(KeyboardInterrupt), averaging.evaluating():
            raise KeyboardInterrupt
    assert same(weights(averaging), weights(plain))
    assert same(plain.weights(), weights(plain))


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_held_out_text_is_read_with_the_average(store: PairStore, precision: torch.dtype) -> None:
    machine = Machine(torch.device("cpu"), precision)
    torch.manual_seed(3)
    model = build_model(MODEL, VOCABULARY, VOCABULARY)
    ours = Trainer(model, EMA, machine, seed=1, parallel=1)
    reader = Trainer(build_model(MODEL, VOCABULARY, VOCABULARY), TRAINING, machine, seed=1, parallel=1)
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


def test_frozen_weights_have_no_average(store: PairStore) -> None:
    torch.manual_seed(3)
    model = build_model(MODEL, VOCABULARY, VOCABULARY)
    model.encoder.requires_grad_(False)
    machine = Machine(torch.device("cpu"), torch.float32)
    ours = Trainer(model, EMA, machine, seed=1, parallel=1)
    ours.update(batches_of(store, EMA, 1)[0])
    for name, average in ours.weights().items():
        assert (average.data_ptr() == model.state_dict()[name].data_ptr()) == name.startswith("encoder.")
