"""Distances beyond the largest one, whose vectors are all alike."""

import pytest

from nmt.model import positions
from tests.unit.estimate import test_estimate
from tests.unit.model import test_transformer
from tests.unit.model.reference import model_with

CLIPPED = model_with(test_transformer.TINY, positions="relative", kv_heads=2, d_k=6, norm_placement="pre")


@pytest.fixture(autouse=True)
def _short_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "MAX_DISTANCE", 3)


@pytest.mark.parametrize("lengths", test_transformer.LENGTHS.values(), ids=test_transformer.LENGTHS)
def test_clipped_distances_equal_the_plain_implementation(lengths: tuple[list[int], list[int]]) -> None:
    test_transformer.test_logits_and_gradients_equal_the_plain_implementation(CLIPPED, lengths)


def test_the_formula_of_the_size_counts_the_vectors() -> None:
    test_estimate.test_parameters_equal_those_of_a_model_that_is_built(CLIPPED)
