"""Distances beyond the largest one, whose vectors are all alike."""

import pytest

from nmt.config.model import ModelConfig
from nmt.errors import ConfigError
from tests.unit.estimate import test_parameters
from tests.unit.model import test_transformer
from tests.unit.model.reference import model_with

CLIPPED = model_with(
    test_transformer.TINY, positions="relative", max_relative_distance=3, kv_heads=2, d_k=6, norm_placement="pre"
)


@pytest.mark.parametrize("lengths", test_transformer.LENGTHS.values(), ids=test_transformer.LENGTHS)
def test_clipped_distances_equal_the_plain_implementation(lengths: tuple[list[int], list[int]]) -> None:
    test_transformer.test_logits_and_gradients_equal_the_plain_implementation(CLIPPED, lengths)


def test_the_formula_of_the_size_counts_the_vectors() -> None:
    test_parameters.test_formulas_equal_a_model_that_is_built(CLIPPED)


def test_the_largest_distance_matters_with_relative_positions_only() -> None:
    assert CLIPPED.meaning("max_relative_distance") == 3
    assert ModelConfig().meaning("max_relative_distance") is None


def test_a_largest_distance_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model.max_relative_distance=0 must be at least 1"):
        model_with(CLIPPED, max_relative_distance=0)
