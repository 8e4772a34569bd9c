"""The machine that a process runs on: its device, precision, threads and memory."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch

from nmt.compute.cores import computing_threads, cpu_is_by_amd, cpu_model, usable_memory
from nmt.config.tree import RuntimeConfig
from nmt.errors import CommonError, UserError

BF16_CAPABILITY = (8, 0)
"""The lowest compute capability of GPUs that multiply in bf16. The same GPUs have flash attention."""
FP16_CAPABILITY = (7, 0)
"""The lowest compute capability of GPUs that multiply faster in fp16 than in fp32: V100, T4, RTX 20."""
AMD_WITH_BF16 = ("gfx90a", "gfx94", "gfx95", "gfx11", "gfx12")
"""Beginnings of the names of AMD's architectures that multiply in bf16; their capabilities count differently."""
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
"""The precisions of matrix products, by their names in the settings."""
HALF_PRECISIONS = (torch.bfloat16, torch.float16)
INSTRUCTIONS_WITHOUT_BF16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")
"""Values of ONEDNN_MAX_CPU_ISA that keep PyTorch's matrix products from multiplying in bf16."""
OUT_OF_MEMORY = (
    "DefaultCPUAllocator",
    "MPS backend out of memory",
    "CUDA error: out of memory",
    "HIP error: out of memory",
    "_STATUS_ALLOC_FAILED",  # of cuBLAS and others, which have memory of their own
)
"""What errors say if memory ran out and PyTorch has no type for them."""


class Machine(NamedTuple):
    """The device of a process, and the precision it computes in."""

    device: torch.device
    precision: torch.dtype
    """The type of matrix products and of the residual stream; parameters stay float32."""

    def __str__(self) -> str:
        return f"{self.device.type} in {self.precision_name}"

    @property
    def precision_name(self) -> str:
        """The precision as the settings name it."""
        return next((name for name, each in PRECISIONS.items() if each == self.precision), "fp64")


def prepare_machine(config: RuntimeConfig, local_rank: int = 0, local_processes: int = 1) -> Machine:
    """Choose device, precision and number of threads, and configure PyTorch for them."""
    device = _choose_device(config.device, local_rank)
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.set_float32_matmul_precision("high")
        # cuDNN prepares its attention for 10 ms whenever a size is new, and each step of a beam search has a new one
        torch.backends.cuda.enable_cudnn_sdp(False)
    else:
        keep_memory()
    threads = computing_threads() if sys.platform == "linux" else torch.get_num_threads()  # without a Mac's slow cores
    torch.set_num_threads(config.threads or max(1, threads // local_processes))
    if device.type == "mps" and config.compile:
        raise CommonError("runtime.compile=true is not supported on Apple's GPU: leave it out")
    fast = _fast_precision(device)
    if config.precision == "bf16" != fast and device.type != "cpu":
        raise UserError(
            f"runtime.precision=bf16, but {device_name(device)} is slow in bf16: set it to fp16 or fp32, or to auto, "
            f"which chooses {fast}"
        )
    return Machine(device, PRECISIONS[fast if config.precision == "auto" else config.precision])


def precision_of_gpu(capability: tuple[int, int]) -> str:
    """Return the precision in which CUDA devices of a compute capability train fastest."""
    if capability >= BF16_CAPABILITY:
        return "bf16"
    return "fp16" if capability >= FP16_CAPABILITY else "fp32"


def is_amd() -> bool:
    """Return whether PyTorch computes on AMD's GPUs, which it calls cuda, too."""
    return torch.version.hip is not None


def has_bf16(device: torch.device) -> bool:
    """Return whether a device multiplies fast in bf16; Triton's kernels run on the GPUs that do."""
    return _fast_precision(device) == "bf16"


def _fast_precision(device: torch.device) -> str:
    """Return the precision in which a device trains fastest."""
    if device.type == "cuda" and is_amd():
        architecture = str(torch.cuda.get_device_properties(device).gcnArchName)
        return "bf16" if architecture.startswith(AMD_WITH_BF16) else "fp16"
    if device.type == "cuda":
        return precision_of_gpu(torch.cuda.get_device_capability(device))
    if device.type == "mps":
        return "fp16"
    # faster with AMX, or with the AVX-512 of AMD's processors, but not of Intel's
    has_bf16 = torch.cpu._is_amx_tile_supported() or (torch.cpu._is_avx512_bf16_supported() and cpu_is_by_amd())
    limited = os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() in INSTRUCTIONS_WITHOUT_BF16
    return "bf16" if has_bf16 and not limited else "fp32"


def _choose_device(name: str, local_rank: int) -> torch.device:
    """Return the device that `runtime.device` names, for the process of this number on this machine."""
    has_cuda, has_mps, count = torch.cuda.is_available(), torch.backends.mps.is_available(), torch.cuda.device_count()
    if name in ("auto", "cuda") and not has_cuda and count and torch.version.cuda is not None:
        raise UserError(  # instead of training on the CPU in silence
            f"this machine has {count} GPUs, but PyTorch cannot use them: their driver is too old for CUDA "
            f"{torch.version.cuda}, or does not run. Update it, install a build of PyTorch for an older CUDA, or use "
            "runtime.device=cpu"
        )
    if name == "auto":
        name = "cuda" if has_cuda else "mps" if has_mps else "cpu"
    if (name == "cuda" and not has_cuda) or (name == "mps" and not has_mps):
        raise UserError(f"runtime.device={name}, but PyTorch finds no such GPU here: use runtime.device=cpu or auto")
    if name != "cuda":
        return torch.device(name)
    if local_rank >= count:
        raise UserError(
            f"process {local_rank + 1} of this machine has no GPU of its own; there are {count}: "
            "start one process for each GPU"
        )
    return torch.device("cuda", local_rank)


def device_name(device: torch.device) -> str:
    """Return the name that a device gives itself."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_model()


def memory_of(device: torch.device) -> int:
    """Return the memory of a device in bytes, used or not; on a CPU at most what its container may use."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return int(torch.mps.recommended_max_memory()) if device.type == "mps" else usable_memory()


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error means that memory ran out, for which PyTorch does not have a type on every device."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or any(each in str(error) for each in OUT_OF_MEMORY)


@contextmanager
def explaining_out_of_memory(message: str) -> Iterator[None]:
    """Say what to do if memory runs out in this block."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise UserError(message) from error


def free_cached_memory(device: torch.device) -> None:
    """Return the memory that PyTorch keeps for later allocations to the device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()


def wait(device: torch.device) -> None:
    """Wait until the device has done what it was asked to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def keep_memory() -> None:
    """Let the C library keep the large buffers that every step frees and allocates again.

    By default it returns them to the system, so that every step pays for mapping its memory again, page by page.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # not Linux
        return
    trim_threshold, top_pad, mmap_max, arena_max = -1, -2, -4, -8
    mallopt(arena_max, 1)  # so that threads can reuse each other's memory
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, -1)
    mallopt(top_pad, 64 * 1024 * 1024)
