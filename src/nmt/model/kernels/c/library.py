"""Operations in C for training on a CPU in bf16, if a C compiler is installed.

PyTorch makes several passes over memory where one is enough, and rounds to bf16 between them. Each operation here reads
its inputs once. Without a compiler, or in another precision, plain PyTorch takes their place: ask `computes_in_c` or
`trains_in_c` before you call an operation.
"""

import ctypes
import functools
import os
import shlex
import subprocess
import tempfile
from ctypes import POINTER, Structure, c_float, c_int16, c_int32, c_int64, c_void_p
from pathlib import Path

import torch
from torch import Tensor

SOURCES = tuple(Path(__file__).with_name(name) for name in ("attention.c", "tokens.c"))
OPTIONS = ("-O3", "-march=native", "-fno-strict-aliasing", "-shared", "-fPIC", "-Wno-psabi")
COMPILE_SECONDS = 60
"""The longest time to wait for the compiler."""

LANES = 16
"""Numbers that the operations compute at a time: the widths of streams and heads are multiples of it."""
MAX_THREADS = 2
"""The operations use one thread each. If more threads than this share each operation, PyTorch's own replace them."""


class Stream(Structure):
    """Heads (T, h, width) of a stream, as the C code sees them."""

    _fields_ = (("numbers", c_void_p), ("token_stride", c_int64), ("width", c_int64))

    @classmethod
    def of(cls, heads: Tensor) -> "Stream":
        """Return the address and the strides of heads (T, h, width), whose numbers of a token are adjacent."""
        return cls(heads.data_ptr(), heads.stride(0), heads.shape[2])


class Attention(Structure):
    """What attention reads."""

    _fields_ = (
        ("queries", Stream),
        ("keys", Stream),
        ("values", Stream),
        ("query_offsets", c_void_p),
        ("key_offsets", c_void_p),
        ("sentences", c_int64),
        ("heads", c_int64),
        ("heads_per_key", c_int64),
        ("causal", c_int32),
        ("scale", c_float),
    )


class Dropout(Structure):
    """Which numbers a dropout keeps: those whose 16 random bits are at least `first`."""

    _fields_ = (("draws", c_void_p), ("first", c_int16), ("scale", c_float))


class _Used:
    library: ctypes.CDLL | None = None
    """The operations that this process uses; None is PyTorch's."""


def use_operations(wanted: bool) -> bool:
    """Use the operations from now on, or PyTorch's; return whether there is a working compiler for those wanted.

    They are compiled for this processor, which takes a second. The compiler is `cc`, or what the environment variable
    CC names, which may have options.
    """
    _Used.library = _compiled() if wanted else None
    return _Used.library is not None


def uses_operations(threads: int = 1) -> bool:
    """Return whether this process uses the operations in C, where this number of threads share each operation."""
    return _Used.library is not None and threads <= MAX_THREADS


def library() -> ctypes.CDLL:
    """Return the compiled operations, which this process must use."""
    assert _Used.library is not None
    return _Used.library


def computes_in_c(tensor: Tensor) -> bool:
    """Return whether the operations in C can compute on this tensor."""
    return _has_operations(tensor.device, tensor.dtype)


def trains_in_c(tensor: Tensor) -> bool:
    """Return the same for operations of the model. Translations do not depend on C: only training uses them."""
    return can_train_in_c(tensor.device, tensor.dtype)


def can_train_in_c(device: torch.device, precision: torch.dtype) -> bool:
    """Return whether `trains_in_c` holds for tensors on this device in this precision."""
    return torch.is_grad_enabled() and _has_operations(device, precision)


def _has_operations(device: torch.device, precision: torch.dtype) -> bool:
    if device.type != "cpu" or precision != torch.bfloat16 or torch.compiler.is_compiling():
        return False
    return uses_operations(torch.get_num_threads())


@functools.cache
def _compiled() -> ctypes.CDLL | None:
    try:
        compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
        with tempfile.TemporaryDirectory() as folder:
            compiled = Path(folder) / "operations.so"
            command = [*compiler, *OPTIONS, "-o", str(compiled), *map(str, SOURCES)]
            subprocess.run(command, check=True, capture_output=True, timeout=COMPILE_SECONDS)
            return _declared(ctypes.CDLL(str(compiled)))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _declared(functions: ctypes.CDLL) -> ctypes.CDLL:
    """Declare the types of the functions' arguments."""
    address, count, plan = c_void_p, c_int64, POINTER(Attention)
    arguments = {
        "attend": [plan, address, address],
        "attend_backward": [plan, address, *[Stream] * 3, address],
        "rotate": [address, count, address, c_float, address, count, count, count],
        "softmax_gradient": [address, address, c_float, address, address, address, count, count],
        "add_dropped": [address, address, Dropout, address, count],
        "drop": [address, Dropout, address, count],
        "add_norm": [address, address, Dropout, address, address, c_float, address, address, count, count],
        "add_norm_backward": [
            *[address] * 3, Dropout, address, c_float, *[address] * 5, count, count
        ],
        "scaled_difference": [address, address, c_float, address, count, count],
        "sum_rows": [address, address, count, count],
        "rectifier_gradient": [*[address] * 4, count, count],
    }  # fmt: skip
    for name, types in arguments.items():
        function = getattr(functions, name)
        function.argtypes, function.restype = types, None
    return functions
