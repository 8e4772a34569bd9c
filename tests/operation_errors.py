"""How far the fused operations on a device are from plain PyTorch in float64 on the CPU, by relative norm.

The norm of the difference is divided by the norm of the exact result, because single elements can be near zero. A
result that is not finite has an error that is not finite either.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.model.attention import Attend
from nmt.model.kernels.random_masks import keep_mask
from nmt.model.kernels.rectifier import rectifier_gradient
from nmt.model.kernels.residual import dropout_add, dropout_add_norm
from nmt.model.kernels.softmax import softmax_gradient_
from nmt.model.packed import Packed

TOLERANCES = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 1.5e-2}
"""Largest relative error of one operation that uses no matrix products, or products without TF32."""
LENGTHS = ([5, 31, 1, 17, 128], [9, 1, 120, 8, 31])
"""Lengths of the sentences of both sides, which differ; the longest fill the largest tile of short attention."""
ROWS = 48
SEED, SITE = 12345, 3

Tensors = Sequence[Tensor]
Function = Callable[[Tensors], Tensor]


class MakesAttend(Protocol):
    """A class that implements attention, or a function that makes one."""

    def __call__(self, queries: Packed, keys: Packed, *, causal: bool) -> Attend: ...


def relative_error(found: Tensor, exact: Tensor) -> float:
    """Return the norm of the difference, divided by the norm of the exact values."""
    return float((found.detach().double().cpu() - exact.detach()).norm() / exact.detach().norm())


def largest(errors: Iterable[float]) -> float:
    """Return the largest error; not a number if one of them is not."""
    return float(torch.tensor(list(errors), dtype=torch.float64).max())


def operation_error(ours: Function, exact: Function, inputs: Tensors, device: torch.device) -> float:
    """Return the largest relative error of an operation's result and gradients, under a random linear loss.

    A linear loss, because the outputs of a LayerNorm have a constant sum of squares, whose gradient is only rounding.

    Args:
        ours: The operation to test, on the device, in the precision of the inputs.
        exact: The same operation in plain PyTorch, which is computed on the CPU in float64.
        inputs: The tensors that it is differentiated with respect to.
        device: The device to test.
    """
    results = []
    for operation, place, dtype in ((ours, device, None), (exact, torch.device("cpu"), torch.float64)):
        leaves = [each.detach().to(place, dtype or each.dtype).requires_grad_() for each in inputs]
        output = operation(leaves)
        direction = torch.randn(output.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        output.backward(direction.to(inputs[0].dtype).to(place, output.dtype))
        results.append([output, *(leaf.grad for leaf in leaves if leaf.grad is not None)])
    return largest(relative_error(found, expected) for found, expected in zip(*results, strict=True))


def random_rows(*shape: int, dtype: torch.dtype, seed: int = 1) -> Tensor:
    """Return random numbers on the CPU."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def attention_error(
    attend: MakesAttend,
    device: torch.device,
    dtype: torch.dtype,
    *,
    causal: bool,
    widths: tuple[int, int] = (64, 64),
    longest: int = 128,
) -> float:
    """Return the error of an implementation of attention, to the same stream or, without `causal`, to another one.

    Args:
        attend: The implementation.
        device: The device to test.
        dtype: The precision of queries, keys and values.
        causal: Whether no query sees later keys.
        widths: The widths of a head's keys and of its values.
        longest: The number of tokens of the longest sentence: longer ones are cut, or one as long is added.
    """
    added = [longest] if longest > max(map(max, LENGTHS)) else []
    sides = [[*(min(length, longest) for length in lengths), *added] for lengths in LENGTHS]
    to_lengths = sides[0] if causal else sides[1]
    queries, keys = (_stream(lengths).to(device) for lengths in (sides[0], to_lengths))
    implementation = attend(queries, queries if causal else keys, causal=causal)
    inputs = [
        random_rows(sum(lengths), 2, width, dtype=dtype, seed=seed)
        for seed, (lengths, width) in enumerate(
            ((sides[0], widths[0]), (to_lengths, widths[0]), (to_lengths, widths[1])), start=3
        )
    ]

    def exact(tensors: Tensors) -> Tensor:
        parts = zip(tensors[0].split(sides[0]), *(each.split(to_lengths) for each in tensors[1:]), strict=True)
        return torch.cat([_attend_exactly(*each, causal=causal) for each in parts])

    def ours(tensors: Tensors) -> Tensor:
        queries, keys, values = tensors
        return implementation(queries, keys, values)

    return operation_error(ours, exact, inputs, device)


def _stream(lengths: Sequence[int]) -> Packed:
    return Packed.from_lengths(torch.zeros(sum(lengths), dtype=torch.int64), torch.tensor(lengths))


def _attend_exactly(queries: Tensor, keys: Tensor, values: Tensor, *, causal: bool) -> Tensor:
    """Return the attention within one sentence, in plain PyTorch."""
    scores = torch.einsum("qhd,khd->hqk", queries, keys) / math.sqrt(queries.shape[-1])
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), values).flatten(-2)


def residual_error(
    device: torch.device, dtype: torch.dtype, probability: float, *, width: int = 512, norm: bool = True
) -> float:
    """Return the error of dropout and addition as one operation, with or without the norm after them."""
    seed = torch.tensor([SEED], device=device)
    inputs = [random_rows(ROWS, width, dtype=dtype, seed=each) for each in (1, 2)]
    if norm:
        inputs += [random_rows(width, dtype=torch.float32, seed=each) for each in (3, 4)]
    kept = keep_mask(inputs[0], probability, torch.tensor([SEED]), SITE) / (1 - probability)

    def ours(tensors: Tensors) -> Tensor:
        operation: Callable[..., Tensor] = dropout_add_norm if norm else dropout_add
        return operation(*tensors, probability, seed, SITE)

    def exact(tensors: Tensors) -> Tensor:
        added = tensors[0] + tensors[1] * kept
        return F.layer_norm(added, (width,), tensors[2], tensors[3]) if norm else added

    return operation_error(ours, exact, inputs, device)


def softmax_error(device: torch.device, dtype: torch.dtype, words: int = 5003) -> float:
    """Return the error of the gradient that replaces the logits of the loss, and of its two sums."""
    smoothing = 0.1
    logits, labels = random_rows(ROWS, words, dtype=dtype).mul_(3), torch.arange(ROWS) * 7 % words
    replaced = logits.to(device, copy=True)
    normaliser, label_logit = softmax_gradient_(replaced, labels.to(device), smoothing)
    exact = logits.double()
    gradient = torch.softmax(exact, -1) - (1 - smoothing) * F.one_hot(labels, words)
    expected = gradient, exact.logsumexp(-1), exact.gather(-1, labels[:, None])[:, 0]
    pairs = zip((replaced, normaliser, label_logit), expected, strict=True)
    return largest(relative_error(ours, each) for ours, each in pairs)


def rectifier_error(device: torch.device, dtype: torch.dtype, width: int = 2048) -> float:
    """Return the error of the gradient of a rectifier, and of its sum over the rows."""
    gradient, rectified = random_rows(ROWS, width, dtype=dtype), random_rows(ROWS, width, dtype=dtype, seed=2).relu_()
    found = rectifier_gradient(gradient.to(device), rectified.to(device))
    masked = gradient.double() * (rectified > 0)
    return largest(relative_error(ours, each) for ours, each in zip(found, (masked, masked.sum(0)), strict=True))
