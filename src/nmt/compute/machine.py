"""The machine that a process runs on: its device, precision, threads and memory."""

import ctypes
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

import torch

from nmt.compute.cores import computing_threads
from nmt.config.schema import RuntimeConfig
from nmt.errors import CommonError, UserError

BF16_CAPABILITY = (8, 0)
"""The lowest compute capability of GPUs that multiply in bf16. The same GPUs have flash attention."""

ONEDNN_LIMITS = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
"""Environment variables that keep PyTorch's matrix products from using all instructions of a CPU."""
INSTRUCTIONS_WITHOUT_BF16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")


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
    torch.set_num_threads(config.threads or max(1, computing_threads() // local_processes))
    if config.precision == "bf16" and device.type == "cuda" and not _has_fast_bf16(device):
        raise UserError(
            f"runtime.precision=bf16, but {torch.cuda.get_device_name(device)} has no bf16: "
            "use runtime.precision=fp32 or auto"
        )
    if device.type == "mps":
        _check_settings_for_mps(config)
    bf16 = _has_fast_bf16(device) if config.precision == "auto" else config.precision == "bf16"
    return Machine(device, torch.bfloat16 if bf16 else torch.float32)


def reason_for_precision(machine: Machine, config: RuntimeConfig) -> str:
    """Return why a machine computes in its precision."""
    if config.precision != "auto":
        return f"runtime.precision={config.precision}"
    kind = "CPU" if machine.device.type == "cpu" else "GPU"
    return f"this {kind} has {'' if machine.precision == torch.bfloat16 else 'no '}fast bf16"


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """Return the device that `runtime.device` names, for the process of this number on this machine."""
    available: dict[str, Callable[[], bool]] = {
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
        "cpu": lambda: True,
    }
    if name == "auto":
        name = next(each for each, is_available in available.items() if is_available())
    if not available[name]():
        raise UserError(f"runtime.device={name}, but PyTorch finds no such GPU here: use runtime.device=cpu or auto")
    return _own_gpu(local_rank) if name == "cuda" else torch.device(name)


def _check_settings_for_mps(config: RuntimeConfig) -> None:
    """Refuse what has never been tried on Apple's GPU."""
    if config.precision == "bf16":
        raise CommonError("runtime.precision=bf16 is not supported on Apple's GPU: leave it out, or set it to fp32")
    if config.compile:
        raise CommonError("runtime.compile=true is not supported on Apple's GPU: leave it out")


def _own_gpu(local_rank: int) -> torch.device:
    """Return the GPU of a process. PyTorch calls AMD's GPUs cuda, too."""
    if local_rank >= torch.cuda.device_count():
        raise UserError(
            f"process {local_rank + 1} of this machine has no GPU of its own; there are {torch.cuda.device_count()}: "
            "start one process for each GPU"
        )
    return torch.device("cuda", local_rank)


def _has_fast_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= BF16_CAPABILITY
    if device.type == "mps":
        return False
    limit = next((os.environ[name].upper() for name in ONEDNN_LIMITS if name in os.environ), "")
    if limit in INSTRUCTIONS_WITHOUT_BF16:
        return False
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def memory_of(device: torch.device) -> int:
    """Return the memory of a device in bytes, used or not."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory())
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error means that memory ran out, for which PyTorch does not have a type on every device."""
    messages = ("DefaultCPUAllocator", "MPS backend out of memory")
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(each in str(error) for each in messages)


def free_cached_memory(device: torch.device) -> None:
    """Return the memory that PyTorch keeps for later allocations to the device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()


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
