"""The sum of the gradients of micro-batches, which threads have computed in parallel."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nmt.compute.threads import concurrent_workers, run_all_in_threads


def accumulate(gradients: Sequence[Tensor], parameters: Sequence[nn.Parameter]) -> None:
    """Add gradients to those of the parameters; the order of the calls determines the last bits.

    A thread adds whole tensors: if threads share a small one, they wait for each other longer than the addition takes.
    """
    if parameters[0].grad is None:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            # the fused optimizers need the strides of the parameter, and part of a wider matrix has others
            parameter.grad = gradient.contiguous()
        return
    sums = [parameter.grad for parameter in parameters if parameter.grad is not None]
    pairs = list(zip(sums, gradients, strict=True))
    shares = concurrent_workers(len(pairs))
    run_all_in_threads(_add, [pairs[first::shares] for first in range(shares)])


def _add(pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    sums, gradients = zip(*pairs, strict=True)
    torch._foreach_add_(sums, gradients)
