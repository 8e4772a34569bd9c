"""Decide once, when a process starts, whether it computes with the kernels of this package."""

import torch

from nmt.compute.machine import Machine
from nmt.errors import UserError
from nmt.model.kernels.backend import has_fused_residual, want_triton
from nmt.model.kernels.c.library import use_operations
from nmt.model.kernels.residual import dropout_add


def use_kernels(machine: Machine, *, wanted: bool, only: torch.dtype | None = None) -> None:
    """Use the kernels from now on, given `runtime.kernels`: in C on a CPU, in Triton on a GPU; or PyTorch's operations.

    A process that translates needs those in C in `only` one precision.

    Raises:
        UserError: Triton does not work on this GPU.
    """
    if machine.device.type == "cpu":
        use_operations(wanted, only=only)
    want_triton(wanted)
    if has_fused_residual(machine.device):
        _check_triton(machine)


def _check_triton(machine: Machine) -> None:
    """Compile a kernel: Triton needs a C compiler and Python's headers for that, which many machines do not have."""
    rows, seed = torch.zeros(16, 16, device=machine.device), torch.zeros(1, dtype=torch.int64, device=machine.device)
    try:
        dropout_add(rows, rows, 0.1, seed, 0).sum().item()
    except Exception as error:  # of any kind: drivers, compilers and Triton have many
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise UserError(
            f"Triton's kernels cannot be compiled for {torch.cuda.get_device_name(machine.device)} ({reason[:200]}): "
            "install a C compiler and Python's headers (gcc, python3-dev), or set runtime.kernels=false"
        ) from error
