"""The watch over the steps: whose gradient was not finite, how many in a row, and where a loss explodes."""

import math

import numpy as np
import torch

from nmt.data.loader import DataPosition, MicroBatch
from nmt.model.packed import Packed
from nmt.training.divergence import NAMED, DivergenceMonitor, weights_hash
from nmt.training.loop import Best

NONE = Packed.from_sentences([[3]])


def noted(norms: list[float], first: int = 1, divergence: DivergenceMonitor | None = None) -> DivergenceMonitor:
    divergence = divergence or DivergenceMonitor()
    for step, norm in enumerate(norms, first):
        pairs = np.arange(10 * step, 10 * step + 6)
        micro_batches = [
            MicroBatch(NONE, NONE, torch.tensor([3]), pairs[:3]),
            MicroBatch(NONE, NONE, torch.tensor([3]), pairs[3:]),
        ]
        divergence.note(step, DataPosition(0, step - 1), torch.tensor(norm), micro_batches)
    return divergence


def test_bad_steps_are_named_with_their_pairs() -> None:
    bad = noted([1.0, math.nan, 2.0, math.inf]).look()
    assert [each.step for each in bad] == [2, 4]
    assert bad[0].pairs == [20, 21, 22, 23, 24, 25]
    assert bad[0].data_position == DataPosition(0, 1)
    assert "step 2 (epoch 1, batch 2, pairs 20, 21, 22, 23, 24, 25, ... of train; `nmt batch batch.step=2`" in str(
        bad[0]
    )


def test_steps_are_told_once() -> None:
    divergence = noted([math.nan])
    assert len(divergence.look()) == 1
    assert divergence.look() == []


def test_a_row_goes_on_over_looks_and_ends_with_a_good_step() -> None:
    divergence = noted([1.0, math.nan, math.nan])
    divergence.look()
    assert (divergence.in_a_row, divergence.first_bad) == (2, 2)
    noted([math.inf], 4, divergence).look()
    assert (divergence.in_a_row, divergence.first_bad) == (3, 2)
    noted([1.0], 5, divergence).look()
    assert divergence.in_a_row == 0
    noted([math.nan], 6, divergence).look()
    assert (divergence.in_a_row, divergence.first_bad) == (1, 6)
    divergence.forgive()
    assert divergence.in_a_row == 0


def test_a_norm_is_what_it_was_when_noted() -> None:
    norm = torch.tensor(1.0)
    divergence = DivergenceMonitor()
    divergence.note(1, DataPosition(), norm, [])
    norm.fill_(math.nan)
    assert divergence.look() == []


def test_few_pairs_are_named() -> None:
    divergence = DivergenceMonitor()
    divergence.note(
        1, DataPosition(), torch.tensor(math.nan), [MicroBatch(NONE, NONE, torch.tensor([3]), np.arange(1000))]
    )
    assert divergence.look()[0].pairs == list(range(NAMED))


def test_an_explosion_names_the_largest_gradient() -> None:
    divergence = noted([1.0, 2.0])
    divergence.look()
    assert divergence.explosion(5.0) == ""
    noted([3.0, 800.0, 7.0], 3, divergence).look()
    said = divergence.explosion(7.5)
    assert "the loss has risen from 5.00 to 7.50; largest gradient (800): step 4" in said
    noted([3.0], 6, divergence).look()
    assert divergence.explosion(6.9) == ""


def test_a_loss_that_is_no_number_is_no_lowest() -> None:
    divergence = noted([math.nan])
    divergence.look()
    assert divergence.explosion(math.nan) == ""
    noted([1.0], 2, divergence).look()
    assert divergence.explosion(9.0) == ""


def test_a_hash_tells_models_apart_by_a_bit() -> None:
    model = torch.nn.Linear(7, 5)
    before = weights_hash(model)
    assert weights_hash(model) == before
    assert len(before) == 2
    with torch.no_grad():
        model.bias[3] = torch.nextafter(model.bias[3], torch.tensor(9.0))
    after = weights_hash(model)
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_the_best_is_a_number() -> None:
    best = Best("loss")
    for value in (math.nan, 3.0, math.nan, 4.0, 2.0):
        best.look({"loss": value})
    assert (best.value, best.stale) == (2.0, 0)
    best.look({"loss": math.inf})
    assert (best.value, best.stale) == (2.0, 1)
