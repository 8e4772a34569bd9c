"""The backend of this process: chosen once, from the device, the precision, the settings and the compilers it finds."""

from collections.abc import Collection

import torch

from nmt.compute.machine import Machine, has_bf16
from nmt.model.backends.eager import Eager
from nmt.model.kernels.c.library import use_operations


class _Chosen:
    backend: Eager = Eager()


def backend() -> Eager:
    """Return what computes the operations of models in this process: plain PyTorch until `choose` is called."""
    return _Chosen.backend


def choose(machine: Machine, *, kernels: bool, compiled: bool = False, trains: bool = True) -> Eager:
    """Choose the backend of this process for a machine, and return it.

    Args:
        machine: The device and the precision of matrix products.
        kernels: `runtime.kernels`: whether to compute in C on a CPU, if it has a C compiler, and in Triton on a GPU.
        compiled: `runtime.compile`: torch.compile writes its own operations.
        trains: Whether models are trained. Translation needs operations in C in float32 only.

    Raises:
        UserError: Triton is installed, but does not work on this GPU.
    """
    kernels, device = kernels and not compiled, machine.device
    use_operations(())
    if device.type == "cuda":
        _Chosen.backend = _of_gpu(device, kernels=kernels)
    elif device.type == "cpu" and kernels and machine.precision in (torch.float32, torch.bfloat16):
        _Chosen.backend = _of_cpu({torch.float32, machine.precision} if trains else {torch.float32})
    else:
        _Chosen.backend = Eager()
    return _Chosen.backend


def _of_cpu(precisions: Collection[torch.dtype]) -> Eager:
    from nmt.model.backends.cpu import Cpu  # noqa: PLC0415 - GPUs do not need it

    return Cpu(precisions) if use_operations(precisions) else Eager()


def _of_gpu(device: torch.device, *, kernels: bool) -> Eager:
    from nmt.model.backends.cuda import Cuda, has_triton  # noqa: PLC0415 - CPUs do not need it

    if not (kernels and has_triton() and has_bf16(device)):
        return Cuda(device)
    from nmt.model.backends.triton import Triton  # noqa: PLC0415 - imports Triton, which takes long

    chosen = Triton(device)
    chosen.try_out()
    return chosen
