"""Products that compute several things at the same time, and the gradients of these."""

import pytest
import torch

from nmt.model.linear import joined


def test_adjacent_columns_are_joined_without_a_copy() -> None:
    whole = torch.arange(24.0).view(4, 6)
    parts = whole.split([1, 2, 3], 1)
    assert joined(parts).equal(whole)
    assert joined(parts).data_ptr() == whole.data_ptr()
    assert joined(parts[1:]).equal(torch.cat(parts[1:], 1))  # they do not fill their rows


@pytest.mark.parametrize("order", [[1, 0], [0, 0]])
def test_other_columns_of_a_matrix_are_copied(order: list[int]) -> None:
    halves = torch.arange(24.0).view(4, 6).split(3, 1)
    parts = [halves[index] for index in order]
    assert joined(parts).equal(torch.cat(parts, 1))


def test_matrices_of_their_own_are_copied() -> None:
    parts = torch.arange(12.0).view(4, 3), torch.arange(8.0).view(4, 2)
    assert joined(parts).equal(torch.cat(parts, 1))
