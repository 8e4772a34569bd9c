"""Rotary positions, against rotations one by one."""

import math

import pytest
import torch
from torch import Tensor

from nmt.config.compose import compose
from nmt.errors import ConfigError
from nmt.model.positions.rotary import rotate
from nmt.model.positions.sinusoidal import sinusoids

TOKENS, HEADS, WIDTH = 9, 2, 16


def one_by_one(heads: Tensor) -> Tensor:
    """Rotate each pair of coordinates by the angle of its position, in float64."""
    rotated = torch.zeros(heads.shape, dtype=torch.float64)
    for position in range(TOKENS):
        for pair in range(0, WIDTH, 2):
            angle = position / 10_000 ** (pair / WIDTH)
            even, odd = heads[position, :, pair].double(), heads[position, :, pair + 1].double()
            rotated[position, :, pair] = even * math.cos(angle) - odd * math.sin(angle)
            rotated[position, :, pair + 1] = even * math.sin(angle) + odd * math.cos(angle)
    return rotated


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-6), (torch.bfloat16, 2e-3)])
def test_rotation_and_its_gradient(dtype: torch.dtype, bound: float) -> None:
    random = torch.Generator().manual_seed(1)
    product = torch.randn(TOKENS, 3 * HEADS * WIDTH, generator=random).to(dtype).requires_grad_()
    gradient = torch.randn(TOKENS, HEADS, WIDTH, generator=random).to(dtype)
    heads = product[:, HEADS * WIDTH : 2 * HEADS * WIDTH].unflatten(1, (HEADS, WIDTH))  # as the layers pass them
    table = sinusoids(TOKENS, WIDTH)  # in float32, so that only the rounding of the result remains
    rotated = rotate(heads, table)
    assert rotated.dtype == dtype
    expected = one_by_one(heads)
    assert float((rotated.detach() - expected.detach()).norm() / expected.detach().norm()) < bound
    (ours,) = torch.autograd.grad(rotated, heads, gradient)
    (exact,) = torch.autograd.grad(expected, heads, gradient.double())
    assert float((ours - exact).norm() / exact.norm()) < bound


def test_heads_in_another_order_in_memory_are_rotated_alike() -> None:
    heads, table = torch.randn(HEADS, WIDTH, TOKENS).to(torch.bfloat16), sinusoids(TOKENS, WIDTH)
    assert rotate(heads.permute(2, 0, 1), table).equal(rotate(heads.permute(2, 0, 1).contiguous(), table))


def test_an_odd_width_of_heads_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model.d_k=7 must be even for rotary positions"):
        compose(["model.positions=rotary", "model.d_k=7"])
