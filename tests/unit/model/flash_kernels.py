"""CPU kernels for PyTorch's variable-length flash attention, so that the code around it runs without a GPU.

They refuse what the GPU's kernels refuse, and work as these do: products of bf16 inputs are summed in float32, and the
backward pass computes the weights again from the log-sum-exp of the scores.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import varlen

MAX_HEAD_WIDTH = 256


@cache
def register_flash_kernels() -> None:
    """Let `varlen_attn` run on the CPU in this process."""
    varlen._varlen_attn.register_kernel("cpu")(_forward)
    varlen._varlen_attn_backward.register_kernel("cpu")(_backward)


def _check(*inputs: Tensor) -> None:
    assert {each.dtype for each in inputs} in ({torch.bfloat16}, {torch.float16})
    assert len({each.shape[1:] for each in inputs}) == 1, "heads differ in number or width"
    assert inputs[0].shape[-1] % 8 == 0
    assert inputs[0].shape[-1] <= MAX_HEAD_WIDTH
    assert all(each.stride(-1) == 1 for each in inputs)


def _sentences(query_offsets: Tensor, key_offsets: Tensor) -> Iterator[tuple[slice, slice]]:
    """Yield the queries and the keys of each sentence that has any."""
    assert query_offsets.dtype == key_offsets.dtype == torch.int32
    queries, keys = query_offsets.tolist(), key_offsets.tolist()
    for place in range(len(queries) - 1):
        if queries[place + 1] > queries[place]:
            yield slice(queries[place], queries[place + 1]), slice(keys[place], keys[place + 1])


def _scores(queries: Tensor, keys: Tensor, scale: float, causal: bool) -> Tensor:
    scores = torch.einsum("ihd,jhd->hij", queries.float(), keys.float()) * scale
    future = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1 + scores.shape[2] - scores.shape[1])
    return scores.masked_fill(future, -torch.inf) if causal else scores


def _forward(query: Tensor, key: Tensor, value: Tensor, *options: Any) -> tuple[Tensor, Tensor, Tensor]:
    query_offsets, key_offsets, max_query, max_key, causal, scale = options[:6]
    _check(query, key, value)
    attended = torch.empty_like(query)
    normaliser = query.new_empty((query.shape[1], query.shape[0]), dtype=torch.float32)
    for rows, columns in _sentences(query_offsets, key_offsets):
        assert rows.stop - rows.start <= max_query
        assert columns.stop - columns.start <= max_key
        scores = _scores(query[rows], key[columns], scale, causal)
        normaliser[:, rows] = scores.logsumexp(-1)
        weights = scores.softmax(-1).to(value.dtype).float()
        attended[rows] = torch.einsum("hij,jhd->ihd", weights, value[columns].float()).to(query.dtype)
    return attended, normaliser, torch.zeros(2, dtype=torch.uint64)


def _backward(upstream: Tensor, query: Tensor, key: Tensor, value: Tensor, *saved: Any) -> tuple[Tensor, ...]:
    out, normaliser, query_offsets, key_offsets, _, _, causal, _, scale = saved[:9]
    gradients = torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)
    for rows, columns in _sentences(query_offsets, key_offsets):
        gradient = upstream[rows].float()
        weights = (_scores(query[rows], key[columns], scale, causal) - normaliser[:, rows, None]).exp()
        along_values = torch.einsum("ihd,jhd->hij", gradient, value[columns].float())
        along_output = torch.einsum("ihd,ihd->hi", gradient, out[rows].float())
        grad_scores = weights * (along_values - along_output[..., None]) * scale
        gradients[0][rows] = torch.einsum("hij,jhd->ihd", grad_scores, key[columns].float()).to(query.dtype)
        gradients[1][columns] = torch.einsum("hij,ihd->jhd", grad_scores, query[rows].float()).to(query.dtype)
        gradients[2][columns] = torch.einsum("hij,ihd->jhd", weights, gradient).to(query.dtype)
    return gradients
