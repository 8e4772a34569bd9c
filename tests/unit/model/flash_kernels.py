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


def _check(queries: Tensor, keys: Tensor, values: Tensor, *offsets: Tensor) -> None:
    inputs = (queries, keys, values)
    if queries.dtype not in (torch.bfloat16, torch.float16) or any(each.dtype != queries.dtype for each in inputs):
        raise TypeError(f"flash attention takes three tensors in bf16 or fp16, not {[each.dtype for each in inputs]}")
    if any(each.shape[1:] != queries.shape[1:] for each in inputs):
        raise ValueError(f"heads differ in number or width: {[each.shape for each in inputs]}")
    if queries.shape[-1] % 8 or queries.shape[-1] > MAX_HEAD_WIDTH:
        raise ValueError(f"the width of a head must be a multiple of 8 and at most 256, not {queries.shape[-1]}")
    if any(each.stride(-1) != 1 for each in inputs) or any(each.dtype != torch.int32 for each in offsets):
        raise ValueError("heads must be contiguous, and offsets int32")


def _sentences(query_offsets: Tensor, key_offsets: Tensor) -> Iterator[tuple[slice, slice]]:
    """Yield the queries and the keys of each sentence that has any."""
    starts = zip(query_offsets.tolist(), key_offsets.tolist(), strict=True)
    first, second = next(starts)
    for query_end, key_end in starts:
        if query_end > first:
            yield slice(first, query_end), slice(second, key_end)
        first, second = query_end, key_end


def _scores(queries: Tensor, keys: Tensor, scale: float, causal: bool) -> Tensor:
    scores = torch.einsum("ihd,jhd->hij", queries.float(), keys.float()) * scale
    if causal:
        future = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1 + scores.shape[2] - scores.shape[1])
        scores = scores.masked_fill(future, -torch.inf)
    return scores


def _forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    max_k: int,
    is_causal: bool = False,
    scale: float | None = None,
    *_: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    _check(query, key, value, cu_seq_q, cu_seq_k)
    assert scale is not None
    attended = torch.empty_like(query)
    normaliser = query.new_empty((query.shape[1], query.shape[0]), dtype=torch.float32)
    for rows, columns in _sentences(cu_seq_q, cu_seq_k):
        assert rows.stop - rows.start <= max_q
        assert columns.stop - columns.start <= max_k
        scores = _scores(query[rows], key[columns], scale, is_causal)
        normaliser[:, rows] = scores.logsumexp(-1)
        weights = scores.softmax(-1).to(value.dtype).float()
        attended[rows] = torch.einsum("hij,jhd->ihd", weights, value[columns].float()).to(query.dtype)
    return attended, normaliser, torch.zeros(2, dtype=torch.uint64)


def _backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    cu_seq_q: Tensor,
    cu_seq_k: Tensor,
    max_q: int,
    max_k: int,
    is_causal: bool,
    rng_state: Tensor,
    scale: float | None = None,
    *_: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    assert scale is not None
    gradients = torch.empty_like(query), torch.empty_like(key), torch.empty_like(value)
    for rows, columns in _sentences(cu_seq_q, cu_seq_k):
        gradient = grad_out[rows].float()
        weights = (_scores(query[rows], key[columns], scale, is_causal) - lse[:, rows, None]).exp()
        along_values = torch.einsum("ihd,jhd->hij", gradient, value[columns].float())
        along_output = torch.einsum("ihd,ihd->hi", gradient, out[rows].float())
        grad_scores = weights * (along_values - along_output[..., None]) * scale
        for tensor, part, product in (
            (gradients[0], rows, torch.einsum("hij,jhd->ihd", grad_scores, key[columns].float())),
            (gradients[1], columns, torch.einsum("hij,ihd->jhd", grad_scores, query[rows].float())),
            (gradients[2], columns, torch.einsum("hij,ihd->jhd", weights, gradient)),
        ):
            tensor[part] = product.to(tensor.dtype)
    return gradients
