"""The machine that a process runs on: its device, precision, threads and memory."""

import ctypes
import os
import sys
from typing import NamedTuple

import torch

from nmt.compute.cores import usable_cores
from nmt.config.schema import RuntimeConfig
from nmt.errors import UserError

BF16_CAPABILITY = (8, 0)
"""The lowest compute capability of GPUs that multiply in bf16. The same GPUs have flash attention."""


class Machine(NamedTuple):
    """The device of a process, and the precision it computes in."""

    device: torch.device
    precision: torch.dtype
    """The type of matrix products and of the residual stream; parameters stay float32."""

    def __str__(self) -> str:
        return f"{self.device.type} in {'bf16' if self.precision == torch.bfloat16 else 'fp32'}"


def prepare_machine(config: RuntimeConfig, local_rank: int = 0, local_processes: int = 1) -> Machine:
    """Choose device, precision and number of threads, and configure PyTorch for them."""
    device = choose_device(config.device, local_rank)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.set_float32_matmul_precision("high")
    else:
        keep_memory()
    torch.set_num_threads(config.threads or max(1, usable_cores() // local_processes))
    if config.precision == "bf16" and device.type == "cuda" and not _has_fast_bf16(device):
        raise UserError(
            f"runtime.precision=bf16, but {torch.cuda.get_device_name(device)} has no bf16: "
            "use runtime.precision=fp32 or auto"
        )
    bf16 = _has_fast_bf16(device) if config.precision == "auto" else config.precision == "bf16"
    return Machine(device, torch.bfloat16 if bf16 else torch.float32)


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """Return the device that `runtime.device` names, for the process of this number on this machine."""
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UserError("runtime.device=cuda, but PyTorch finds no GPU here: use runtime.device=cpu or auto")
    if name == "cpu" or not available:
        return torch.device("cpu")
    if local_rank >= torch.cuda.device_count():
        raise UserError(
            f"process {local_rank + 1} of this machine has no GPU of its own; there are {torch.cuda.device_count()}: "
            "start one process for each GPU"
        )
    return torch.device("cuda", local_rank)


def _has_fast_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= BF16_CAPABILITY
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def memory_of(device: torch.device) -> int:
    """Return the memory of a device in bytes, used or not."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error means that memory ran out; PyTorch has no error type for that on a CPU."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "DefaultCPUAllocator" in str(error)


def keep_memory() -> None:
    """Let the C library keep the large buffers that every step frees and allocates again.

    By default it returns them to the system, so that every step pays for mapping its memory again, page by page.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    trim_threshold, top_pad, mmap_max, arena_max = -1, -2, -4, -8
    mallopt(arena_max, 1)  # so that threads can reuse each other's memory
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, -1)
    mallopt(top_pad, 64 * 1024 * 1024)
