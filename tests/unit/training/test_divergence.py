"""Bad steps are counted and reported, and an exploding loss is noticed."""

import math

import numpy as np
import torch

from nmt.data.loader import DataPosition, MicroBatch
from nmt.model.packed import Packed
from nmt.training.divergence import DivergenceMonitor, weight_hashes
from nmt.training.state import BestValidation

EMPTY = Packed.from_sentences([[3]])


def recorded(norms: list[float], first: int = 1, divergence: DivergenceMonitor | None = None) -> DivergenceMonitor:
    divergence = divergence or DivergenceMonitor()
    for step, norm in enumerate(norms, first):
        pairs = np.arange(10 * step, 10 * step + 6)
        micro_batches = [
            MicroBatch(EMPTY, EMPTY, torch.tensor([3]), pairs[:3]),
            MicroBatch(EMPTY, EMPTY, torch.tensor([3]), pairs[3:]),
        ]
        divergence.record(step, DataPosition(0, step - 1), torch.tensor(norm), micro_batches)
    return divergence


def test_bad_steps_are_named_with_their_pairs() -> None:
    bad = recorded([1.0, math.nan, 2.0, math.inf]).take_bad_steps()
    assert [each.step for each in bad] == [2, 4]
    assert bad[0].pairs == [20, 21, 22, 23, 24, 25]
    assert bad[0].data_position == DataPosition(0, 1)
    assert "step 2 (epoch 1, batch 2, pairs 20, 21, 22, 23, 24, 25, ... of train; `nmt batch batch.step=2`" in str(
        bad[0]
    )


def test_bad_steps_are_reported_once() -> None:
    divergence = recorded([math.nan])
    assert len(divergence.take_bad_steps()) == 1
    assert divergence.take_bad_steps() == []


def test_the_count_of_bad_steps_ends_with_a_good_step() -> None:
    divergence = recorded([1.0, math.nan, math.nan])
    divergence.take_bad_steps()
    assert (divergence.consecutive, divergence.first_bad) == (2, 2)
    recorded([math.inf], 4, divergence).take_bad_steps()
    assert (divergence.consecutive, divergence.first_bad) == (3, 2)
    recorded([1.0], 5, divergence).take_bad_steps()
    assert divergence.consecutive == 0
    recorded([math.nan], 6, divergence).take_bad_steps()
    assert (divergence.consecutive, divergence.first_bad) == (1, 6)


def test_the_warning_names_the_step_with_the_largest_gradient() -> None:
    divergence = recorded([1.0, 2.0])
    divergence.take_bad_steps()
    assert divergence.take_loss_warning(5.0) == ""
    recorded([3.0, 800.0, 7.0], 3, divergence).take_bad_steps()
    said = divergence.take_loss_warning(7.5)
    assert "the loss has risen from 5.00 to 7.50; largest gradient (800): step 4" in said
    recorded([3.0], 6, divergence).take_bad_steps()
    assert divergence.take_loss_warning(6.9) == ""


def test_a_nan_loss_is_never_the_lowest_loss() -> None:
    divergence = recorded([math.nan])
    divergence.take_bad_steps()
    assert divergence.take_loss_warning(math.nan) == ""
    recorded([1.0], 2, divergence).take_bad_steps()
    assert divergence.take_loss_warning(9.0) == ""


def test_the_weights_hash_changes_with_a_single_bit() -> None:
    model = torch.nn.Linear(7, 5)
    before = weight_hashes(model).tolist()
    assert weight_hashes(model).tolist() == before
    assert len(before) == 2
    with torch.no_grad():
        model.bias[3] = torch.nextafter(model.bias[3], torch.tensor(9.0))
    after = weight_hashes(model).tolist()
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_a_validation_that_is_not_finite_is_never_the_best() -> None:
    best = BestValidation("loss")
    for value in (math.nan, 3.0, math.nan, 4.0, 2.0):
        best.update({"loss": value})
    assert (best.value, best.stale) == (2.0, 0)
    best.update({"loss": math.inf})
    assert (best.value, best.stale) == (2.0, 1)
