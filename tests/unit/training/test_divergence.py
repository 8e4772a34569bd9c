"""Bad steps are counted and reported, and different weights are noticed."""

import math

import pytest
import torch

from nmt.data.loader import DataPosition
from nmt.errors import CommonError
from nmt.training.divergence import DivergenceMonitor, weight_hashes
from nmt.training.state import BestValidation


def record(divergence: DivergenceMonitor, first: int, norms: list[float], scales: list[float] | None = None) -> None:
    """Record steps, in fp16 if there are scales."""
    for index, norm in enumerate(norms):
        scale = None if scales is None else torch.tensor(scales[index])
        divergence.record(first + index, DataPosition(0, first + index - 1), torch.tensor(norm), scale)


def test_bad_steps_are_reported_once() -> None:
    divergence = DivergenceMonitor()
    record(divergence, 1, [1.0, math.nan, 2.0, math.inf])
    (warning,) = divergence.check(3)
    assert warning == (
        "no finite gradient, so nothing was changed at 2 steps: step 2 (epoch 1, batch 2; `nmt batch batch.step=2` "
        "shows its text), 4"
    )
    assert list(divergence.check(3)) == []


def test_consecutive_bad_steps_stop_the_run_wherever_they_are_checked() -> None:
    divergence = DivergenceMonitor()
    record(divergence, 1, [1.0, math.nan, math.nan])
    assert len(list(divergence.check(3))) == 1
    record(divergence, 4, [1.0, math.inf])
    assert len(list(divergence.check(3))) == 1  # a good step in between
    record(divergence, 6, [math.nan, math.nan])
    with pytest.raises(CommonError, match="3 steps in a row, from step 5 on, had no finite gradient"):
        list(divergence.check(3))


def test_only_steps_that_a_lower_scale_cannot_mend_count_as_divergence() -> None:
    divergence = DivergenceMonitor()
    record(divergence, 1, [1.0, math.inf, math.nan, math.inf], [4.0, 4.0, 2.0, 1.0])
    overflows, bad = divergence.check(2)
    assert overflows.startswith("the gradient overflowed in fp16, so nothing was changed and the loss scale fell at 2")
    assert "step 4 (epoch 1, batch 4;" in bad


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
    best = BestValidation()
    for value in (math.nan, 3.0, math.nan, 4.0, 2.0):
        best.update({"loss": value})
    assert (best.value, best.stale) == (2.0, 0)
    best.update({"loss": math.inf})
    assert (best.value, best.stale) == (2.0, 1)
