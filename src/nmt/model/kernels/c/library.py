"""Operations in C for training and translating on a CPU, if a C compiler is installed.

PyTorch makes several passes over memory where one is enough, and in bf16 rounds between them. Each operation here reads
its inputs once. The backend for CPUs calls them (`nmt.model.backends.cpu`).
"""

import ctypes
import functools
from collections.abc import Collection, Mapping
from ctypes import CDLL, POINTER, Structure, c_float, c_int16, c_int32, c_int64, c_void_p

import torch
from torch import Tensor

from nmt.model.dropout import first_kept, random_numbers
from nmt.model.kernels.c.compile import compiled

DEFINITIONS: Mapping[torch.dtype, tuple[str, ...]] = {torch.bfloat16: (), torch.float32: ("-DFLOAT32",)}
"""How the operations are compiled for streams of each type."""
LANES = 16
"""The most numbers that the operations compute at a time: the widths of streams and heads are multiples of it."""
OPENMP = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads", "omp_get_max_threads")
"""The functions with which the operations share PyTorch's threads."""


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


class Draws(Structure):
    """The random int16 of each coordinate for a dropout, which keeps those from `first` on, and scales them up."""

    _fields_ = (("draws", c_void_p), ("first", c_int16), ("scale", c_float))

    def __init__(self, stream: Tensor, rate: float) -> None:
        """Draw random numbers for a stream."""
        self.numbers = random_numbers(stream)  # in memory as long as this structure, which has only their address
        super().__init__(self.numbers.data_ptr(), first_kept(rate), 1 / (1 - rate))


class _Used:
    libraries: Mapping[torch.dtype, CDLL] | None = None
    """The operations that this process uses; None is PyTorch's."""


def use_operations(precisions: Collection[torch.dtype]) -> bool:
    """Use the operations in these precisions from now on, or PyTorch's; return whether they are used.

    They are not if there is no working compiler, or if they cannot share PyTorch's threads.
    """
    found = {dtype: each for dtype in precisions if _openmp() and (each := _library(dtype))}
    _Used.libraries = found if found and len(found) == len(precisions) else None
    return _Used.libraries is not None


def library(like: Tensor) -> CDLL:
    """Return the operations for streams of the type of a tensor, which this process must use."""
    assert _Used.libraries is not None
    return _Used.libraries[like.dtype]


def computes_in_c(tensor: Tensor) -> bool:
    """Return whether the operations in C can compute on this tensor."""
    return tensor.device.type == "cpu" and tensor.dtype in (_Used.libraries or ())


def buffers(numbers: int) -> Tensor:
    """Return room for this many numbers in float32 for each thread that shares an operation."""
    return torch.empty(torch.get_num_threads(), numbers)


@functools.cache
def _library(precision: torch.dtype) -> CDLL | None:
    functions = compiled(DEFINITIONS[precision])
    return None if functions is None else _declared(functions)


@functools.cache
def _openmp() -> tuple[c_void_p, ...] | None:
    """Return the addresses of the functions of the OpenMP library that PyTorch has loaded; None if it has another."""
    process = CDLL(None)
    try:
        return tuple(ctypes.cast(getattr(process, name), c_void_p) for name in OPENMP)
    except AttributeError:
        return None


def _declared(functions: CDLL) -> CDLL:
    """Declare the types of the functions' arguments, and let the operations share PyTorch's threads."""
    address, count, plan = c_void_p, c_int64, POINTER(Attention)
    arguments = {
        "use_threads": [address] * 4,
        "attend": [plan, address, address, count],
        "attend_backward": [plan, address, *[Stream] * 3, address, count],
        "rotate": [address, count, address, c_float, address, count, count, count],
        "softmax_gradient": [address, address, c_float, address, address, address, count, count],
        "add_dropped": [address, address, Draws, address, count],
        "add_norm": [address, address, Draws, address, address, c_float, address, address, count, count],
        "add_norm_backward": [*[address] * 3, Draws, address, c_float, *[address] * 3, count, count],
        "sum_rows": [address, address, count, count],
        "rectifier_gradient": [*[address] * 4, count, count],
        "multiply": [address, address, count, address, c_int32, address],
        "use_pool": [count],
        "read_sources": [address],
        "collect": [address],
        "score_step": [address, count, address],
        "search_step": [address, count, address],
    }
    for name, types in arguments.items():
        function = getattr(functions, name)
        function.argtypes, function.restype = types, None
    if openmp := _openmp():
        functions.use_threads(*openmp)
    return functions
