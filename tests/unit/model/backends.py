"""The backends that tests compare with plain PyTorch in float64."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from nmt.compute.machine import Machine
from nmt.model.backends.chosen import _Chosen, choose
from nmt.model.backends.cuda import Cuda
from nmt.model.backends.eager import Eager
from nmt.model.packed import Packed

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
CPU = torch.device("cpu")
BF16, FP32 = torch.bfloat16, torch.float32
TOLERANCES = {FP32: 2e-6, BF16: 1.5e-2}
"""The largest relative error of one operation, its gradients included: a rounding to bf16 is one of 2e-3."""
NAMES = ["triton"] if INTERPRETED else ["eager", "c 1", "c 3", pytest.param("gpu", marks=pytest.mark.gpu)]


@contextmanager
def running(name: str) -> Iterator[torch.device]:
    """Compute with a backend in this block, "c" with some threads; yield its device."""
    if name.startswith("c "):
        torch.set_num_threads(int(name[2:]))
        if choose(Machine(CPU, BF16), kernels=True).name != "cpu":
            pytest.skip("needs a C compiler")
        yield CPU
        torch.set_num_threads(1)
    elif name == "gpu":
        device, precision = torch.device("cuda"), torch.get_float32_matmul_precision()
        choose(Machine(device, BF16), kernels=True)
        torch.set_float32_matmul_precision("highest")
        yield device
        torch.set_float32_matmul_precision(precision)
    elif name == "triton":
        with using(interpreted()):
            yield CPU
    else:
        with using(Eager()):
            yield CPU


@contextmanager
def using(other: Eager) -> Iterator[None]:
    """Compute with another backend in this block."""
    before, _Chosen.backend = _Chosen.backend, other
    try:
        yield
    finally:
        _Chosen.backend = before


def interpreted() -> Cuda:
    """Return the backend for GPUs, whose kernels Triton's interpreter runs on the CPU."""
    from nmt.model.backends.triton import Triton

    backend = Triton(CPU)
    backend.flash[BF16], backend.sums_exactly = True, False
    return backend


def random_numbers(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def stream(lengths: list[int]) -> Packed:
    tokens = torch.randint(4, 30, (sum(lengths),), generator=torch.Generator().manual_seed(len(lengths)))
    return Packed.from_lengths(tokens, torch.tensor(lengths))


def relative_error(found: Tensor, exact: Tensor) -> float:
    """Return the norm of the difference, divided by the norm of the exact values, of which some may be near zero."""
    return float((found.detach().double().cpu() - exact.detach()).norm() / exact.detach().norm())


def error_of(
    ours: Callable[..., Tensor], exact: Callable[..., Tensor], inputs: list[Tensor], device: torch.device = CPU
) -> float:
    """Return the largest relative error of a result and of the gradients of the inputs, under a random linear loss.

    A linear loss, because the outputs of a LayerNorm have a constant sum of squares, whose gradient is only rounding.
    """
    results = []
    for function, place, double in ((ours, device, False), (exact, CPU, True)):
        leaves = [each.to(place, torch.float64 if double else each.dtype).requires_grad_() for each in inputs]
        output = function(*leaves)
        pull = random_numbers(*output.shape, seed=2).to(inputs[0].dtype)
        gradients = torch.autograd.grad(output, leaves, pull.to(output.device, output.dtype))
        if not double:
            assert [each.dtype for each in gradients] == [each.dtype for each in leaves]
        results.append([output, *gradients])
    pairs = [(found, exact) for found, exact in zip(*results, strict=True) if float(exact.detach().norm())]
    return float(torch.tensor([relative_error(*each) for each in pairs]).max())  # NaN if one of them is
