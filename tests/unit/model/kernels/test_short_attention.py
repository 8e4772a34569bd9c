"""Attention with one tile per sentence and head, against torch's attention in float64, one sentence at a time."""

import math

import pytest
import torch
from torch import Tensor

from nmt.model.kernels.short_attention import TILES, short_attention, tile_for
from tests.unit.model.kernels import plain_only


def offsets(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)


def attend_one_by_one(
    queries: Tensor, keys: Tensor, values: Tensor, from_lengths: list[int], to_lengths: list[int], causal: bool
) -> Tensor:
    """Return (Tq, h, d_v), computed by torch for one sentence after the other."""
    parts = []
    shared = queries.shape[1] // keys.shape[1]
    keys, values = (each.repeat_interleave(shared, 1) for each in (keys, values))
    streams = queries.split(from_lengths), keys.split(to_lengths), values.split(to_lengths)
    for query, key, value in zip(*streams, strict=True):
        scores = torch.einsum("qhd,khd->hqk", query, key) / math.sqrt(query.shape[-1])
        if causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
        parts.append(torch.einsum("hqk,khd->qhd", scores.softmax(-1), value))
    return torch.cat(parts)


def heads_of(product: Tensor, widths: list[int], heads: int, key_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values of a product (T, sum of widths)."""
    queries, keys, values = product.split(widths, -1)
    return (
        queries.unflatten(1, (heads, -1)),
        keys.unflatten(1, (key_heads, -1)),
        values.unflatten(1, (key_heads, -1)),
    )


def assert_close(ours: Tensor, expected: Tensor) -> None:
    error = (ours.double() - expected).norm() / expected.norm()
    assert error < (1e-5 if ours.dtype == torch.float32 else 1e-2), error


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("heads", "key_heads", "key_width", "value_width"), [(2, 2, 16, 16), (4, 2, 8, 24)])
@pytest.mark.parametrize("lengths", [[1, 31, 32, 0, 0], [33, 2], [3, 128]])
def test_self_attention_equals_that_of_torch(
    lengths: list[int], heads: int, key_heads: int, key_width: int, value_width: int, dtype: torch.dtype
) -> None:
    widths = [heads * key_width, key_heads * key_width, key_heads * value_width]
    product = torch.randn(sum(lengths), sum(widths), generator=torch.Generator().manual_seed(1)).to(dtype)
    gradient = torch.randn(sum(lengths), heads, value_width, generator=torch.Generator().manual_seed(2)).to(dtype)
    tile = tile_for(max(lengths))

    def parts(product: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return heads_of(product, widths, heads, key_heads)

    for causal in (False, True):
        ours, exact = product.clone().requires_grad_(), product.double().requires_grad_()
        attended = short_attention(
            *parts(ours), offsets(lengths), offsets(lengths), tile, tile, causal=causal, one_product=causal
        )
        expected = attend_one_by_one(*parts(exact), lengths, lengths, causal)
        assert attended.dtype == dtype
        assert_close(attended.detach(), expected.detach())
        (ours_gradient,) = torch.autograd.grad(attended, ours, gradient)
        (exact_gradient,) = torch.autograd.grad(expected, exact, gradient.double())
        for each, truth in zip(ours_gradient.split(widths, -1), exact_gradient.split(widths, -1), strict=True):
            assert_close(each, truth)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cross_attention_equals_that_of_torch(dtype: torch.dtype) -> None:
    from_lengths, to_lengths, random = [5, 1, 20, 0], [40, 33, 2, 0], torch.Generator().manual_seed(1)
    queries = torch.randn(sum(from_lengths), 2, 16, generator=random).to(dtype)
    both = torch.randn(sum(to_lengths), 2, 2, 16, generator=random).to(dtype)
    gradient = torch.randn(sum(from_lengths), 2, 16, generator=random).to(dtype)
    ours, exact = ([each.to(kind).requires_grad_() for each in (queries, both)] for kind in (dtype, torch.float64))
    attended = short_attention(
        ours[0], ours[1][:, 0], ours[1][:, 1], offsets(from_lengths), offsets(to_lengths), 32, 64, causal=False
    )
    expected = attend_one_by_one(exact[0], exact[1][:, 0], exact[1][:, 1], from_lengths, to_lengths, causal=False)
    assert_close(attended.detach(), expected.detach())
    gradients = torch.autograd.grad(attended, ours, gradient)
    for each, truth in zip(gradients, torch.autograd.grad(expected, exact, gradient.double()), strict=True):
        assert_close(each, truth)


@plain_only
def test_gradients_agree_with_finite_differences() -> None:
    lengths = [2, 1, 3, 0]
    tensors = [torch.randn(6, heads, 3, dtype=torch.float64, requires_grad=True) for heads in (4, 2, 2)]

    def attended(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return short_attention(queries, keys, values, offsets(lengths), offsets(lengths), 32, 32, causal=True)

    assert torch.autograd.gradcheck(attended, tensors)


def test_large_scores_give_finite_results() -> None:
    heads = torch.full((3, 1, 16), 100.0, requires_grad=True)
    attended = short_attention(heads, heads, heads, offsets([3]), offsets([3]), 32, 32, causal=True)
    torch.testing.assert_close(attended, heads.detach())
    attended.sum().backward()
    assert heads.grad is not None
    assert heads.grad.isfinite().all()


@plain_only
@pytest.mark.parametrize(("longest", "tile"), [(1, 32), (32, 32), (33, 64), (64, 64), (65, 128), (128, 128)])
def test_tile_is_the_smallest_that_holds_the_longest_sentence(longest: int, tile: int) -> None:
    assert tile_for(longest) == tile


@plain_only
def test_sentences_longer_than_the_largest_tile_have_none() -> None:
    with pytest.raises(ValueError, match="at most 128 tokens, not 129"):
        tile_for(max(TILES) + 1)


@plain_only
@pytest.mark.parametrize("one_product", [True, False])
def test_operation_is_registered_correctly(one_product: bool) -> None:
    queries, keys, values = (torch.randn(5, heads, 16).requires_grad_() for heads in (2, 1, 1))
    arguments = (queries, keys, values, offsets([2, 3]), offsets([2, 3]), 32, 32, True, one_product)
    torch.library.opcheck(torch.ops.nmt.short_attention.default, arguments)
