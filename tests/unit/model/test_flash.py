"""The flash path's own code, with CPU kernels in place of the GPU's, against attention in float64."""

import math

import pytest
import torch
from torch import Tensor

from nmt.model.attention import AttentionSpec
from nmt.model.backends.cuda import FlashAttend
from nmt.model.packed import Packed
from tests.unit.model.flash_kernels import register_flash_kernels

SOURCE, TARGET = [5, 31, 1, 17, 0], [9, 1, 44, 8, 0]
"""Lengths of sentences; the last ones fill the offsets up to a fixed number."""
SHAPES = {
    "heads of 64": (2, 2, 64, 64),
    "keys wider than values": (2, 2, 32, 16),
    "values wider than keys": (3, 3, 8, 24),
    "width that is no multiple of 8": (2, 2, 12, 20),
    "narrow heads": (8, 8, 4, 4),
    "shared key and value heads": (4, 2, 16, 16),
}


def stream(lengths: list[int]) -> Packed:
    return Packed.from_lengths(torch.zeros(sum(lengths), dtype=torch.int64), torch.tensor(lengths))


def reference(queries: Tensor, keys: Tensor, values: Tensor, lengths: list[list[int]], causal: bool) -> Tensor:
    """Attend sentence by sentence and head by head."""
    shared = queries.shape[1] // keys.shape[1]
    sentences = []
    for query, key, value in zip(
        *(each.split(n) for each, n in zip((queries, keys, values), lengths, strict=True)), strict=True
    ):
        heads = []
        for head in range(queries.shape[1]):
            scores = query[:, head] @ key[:, head // shared].T / math.sqrt(queries.shape[-1])
            if causal:
                scores = scores + torch.full_like(scores, -torch.inf).triu(1)
            heads.append(scores.softmax(-1) @ value[:, head // shared])
        sentences.append(torch.cat(heads, -1))
    return torch.cat(sentences)


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "cross"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_flash_attention_and_its_gradient_equal_float64(shape: tuple[int, int, int, int], causal: bool) -> None:
    register_flash_kernels()
    heads, key_heads, d_k, d_v = shape
    of_queries, of_keys = TARGET, TARGET if causal else SOURCE
    # as in a layer, where queries, keys and values are slices of one product
    widths = [heads * d_k, key_heads * d_k, key_heads * d_v]
    to, rows = sum(of_keys), max(sum(of_queries), sum(of_keys))
    product = torch.randn(rows, sum(widths)).bfloat16()
    results = []
    for dtype in (torch.bfloat16, torch.float64):
        leaf = product.to(dtype, copy=True).requires_grad_()
        queries, keys, values = leaf.split(widths, -1)
        inputs = (
            queries[: sum(of_queries)].unflatten(-1, (heads, d_k)),
            keys[:to].unflatten(-1, (key_heads, d_k)),
            values[:to].unflatten(-1, (key_heads, d_v)),
        )
        if dtype == torch.bfloat16:
            attended = FlashAttend(
                AttentionSpec(stream(of_queries), stream(of_keys), causal, max(d_k, d_v), torch.bfloat16)
            )(*inputs)
        else:
            attended = reference(*inputs, [of_queries, of_keys, of_keys], causal)
        weights = torch.randn(attended.shape, generator=torch.Generator().manual_seed(2))
        (attended.double() * weights).sum().backward()
        assert leaf.grad is not None
        results.append([attended.detach().double(), *leaf.grad.double().split(widths, -1)])
    for computed, exact in zip(*results, strict=True):
        assert float((computed - exact).norm()) < 0.01 * float(exact.norm())
