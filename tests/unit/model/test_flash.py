"""The flash path's own code, with CPU kernels in place of the GPU's, against attention in float64."""

import pytest
import torch
from torch import Tensor

from nmt.model.attention import AttentionSpec
from nmt.model.backends.cuda import FlashAttend
from tests.unit.model.backends import BF16, error_of, random_numbers, stream
from tests.unit.model.flash_kernels import register_flash_kernels
from tests.unit.model.test_backends import exactly

SOURCE, TARGET = [5, 31, 1, 17, 0], [9, 1, 44, 8, 0]
"""Lengths of sentences; the last ones fill the offsets up to a fixed number."""
SHAPES = {
    "heads of 64": (2, 2, 64, 64),
    "keys wider than values": (2, 2, 32, 16),
    "width that is no multiple of 8": (2, 2, 12, 20),
    "shared key and value heads": (4, 2, 16, 16),
}


@pytest.mark.parametrize("causal", [True, False], ids=["causal", "cross"])
@pytest.mark.parametrize(("heads", "key_heads", "d_k", "d_v"), SHAPES.values(), ids=SHAPES)
def test_flash_attention_and_its_gradient_equal_float64(
    heads: int, key_heads: int, d_k: int, d_v: int, causal: bool
) -> None:
    register_flash_kernels()
    lengths = [TARGET, TARGET if causal else SOURCE]
    shapes = [(sum(lengths[0]), heads, d_k), (sum(lengths[1]), key_heads, d_k), (sum(lengths[1]), key_heads, d_v)]
    inputs = [random_numbers(*shape, seed=seed).to(BF16) for seed, shape in enumerate(shapes)]
    queries, keys = (stream(each) for each in lengths)
    attend = FlashAttend(AttentionSpec(queries, keys, causal, max(d_k, d_v), torch.bfloat16))

    def exact(*each: Tensor) -> Tensor:
        return exactly(*each, lengths=lengths, causal=causal)

    assert error_of(attend, exact, inputs) < 0.01
