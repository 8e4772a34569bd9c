"""Count operations on CUDA tensors: launches, bytes, FLOPs and host reads."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_leaves

from fake_cuda.flops import flops_of, flops_of_kernel

ALLOCATIONS = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
NO_LAUNCH = ALLOCATIONS | {"_unsafe_view", "_reshape_alias", "lift_fresh", "is_same_size"}
"""Operations that start nothing on the device, beyond those whose schema says that they return views."""
OVERWRITES = {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_"}
"""Operations that write their first argument without reading it; so do their `_foreach_` forms."""
TEMPLATES = {"new_full", "new_zeros", "new_ones", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like"}
"""Operations that take a tensor for its type and device only, and do not read it."""
LOOKUPS = {"gather", "index_select", "embedding", "index"}
"""Operations that read only as many numbers of their first argument as they return."""
SPARSE_UPDATES = {"scatter_", "scatter_add_", "index_add_", "index_copy_", "index_put_"}
"""Operations that change only as many numbers of their first argument as their last tensor has."""
VALUE = "_local_scalar_dense"
"""What `item`, `tolist`, `bool`, `int` and `float` are made of."""
UNKNOWN_SIZE = {"nonzero", "masked_select", "repeat_interleave", "_unique2", "unique_dim", "unique_consecutive"}
"""Operations that return tensors of a size that the host must wait for, unless it is given as an argument."""


@dataclass
class Operations:
    """What all operations do together."""

    launches: int = 0
    bytes: int = 0
    """Bytes read and written; a tensor that is changed in place is read and written."""
    flops: int = 0
    host_reads: int = 0


class Counter(TorchDispatchMode):
    """While active, counts all operations on CUDA tensors."""

    def __init__(self) -> None:
        """Begin with nothing counted."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = Operations()

    def count_wait(self, *_: Any) -> None:
        """Count a call of torch.cuda.synchronize."""
        self.total.host_reads += 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and count it."""
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        inputs = _tensors((args, kwargs))
        if any(map(_on_cuda, inputs)) and _waits_for_result(name, kwargs):
            self.total.host_reads += 1
            if name == VALUE:
                return 0.0 if inputs[0].is_floating_point() else 0
            if name == "nonzero":
                return inputs[0].new_empty((inputs[0].numel(), inputs[0].dim()), dtype=torch.int64)
        result = func(*args, **kwargs)
        used = _distinct(_tensors((args, kwargs, result)))
        if any(map(_on_cuda, used)) and _launches(func, name):
            self.total.launches += 1
            self.total.bytes += _bytes_moved(func, name, args, kwargs, result)
            self.total.flops += flops_of(func, args, kwargs, result)
            self.total.host_reads += _is_waiting_copy(name, args, kwargs, result)
        return result


def launch(kernel: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> None:
    """Stand for `JITFunction.run`: count the kernel of Triton, and compute nothing."""
    for mode in _get_current_dispatch_mode_stack():
        if isinstance(mode, Counter):
            mode.total.launches += 1
            mode.total.bytes += sum(map(_bytes, _tensors(arguments)))
            mode.total.flops += flops_of_kernel(kernel.__name__, arguments, options)


def attend(queries: Tensor, keys: Tensor, values: Tensor, **_: Any) -> Tensor:
    """Stand for `scaled_dot_product_attention`, a single kernel on a GPU, whose output has its heads inside."""
    shape = *queries.shape[:2], queries.shape[2], values.shape[3]
    attended = queries.new_empty(shape[0], shape[2], shape[1], shape[3]).transpose(1, 2)
    launch(attend, attended, queries, keys, values, grid=None, warmup=False)
    return attended


def _launches(func: Any, name: str) -> bool:
    """Return whether an operation starts work on the device: not if it only allocates memory or returns views."""
    returns = func._schema.returns
    views = returns and all(each.alias_info is not None and not each.alias_info.is_write for each in returns)
    return not views and name not in NO_LAUNCH and not name.startswith("prim::")


def _bytes_moved(func: Any, name: str, args: Any, kwargs: Any, result: Any) -> int:
    """Return the bytes that an operation reads and writes, by its schema."""
    read: list[Tensor] = []
    written: list[Tensor] = []
    overwrites = name.removeprefix("_foreach_") in OVERWRITES
    for index, argument in enumerate(func._schema.arguments):
        tensors = _tensors(args[index] if index < len(args) else kwargs.get(argument.name))
        changed = argument.alias_info is not None and argument.alias_info.is_write
        if changed:
            written += tensors
        if name not in TEMPLATES and not (changed and (argument.is_out or overwrites)):
            read += tensors
    results = result if isinstance(result, tuple) else (result,)
    for declared, value in zip(func._schema.returns, results, strict=False):
        if declared.alias_info is None:
            written += _tensors(value)
    return sum(map(_bytes, _distinct(read))) + sum(map(_bytes, _distinct(written))) - _untouched(name, args, result)


def _untouched(name: str, args: Any, result: Any) -> int:
    """Return the bytes of a table that a lookup does not read, or that a sparse update neither reads nor writes."""
    if name in LOOKUPS:
        return max(0, _bytes(args[0]) - _bytes(result))
    if name in SPARSE_UPDATES:
        changed: int = _tensors(args)[-1].numel() * args[0].element_size()
        return 2 * max(0, _bytes(args[0]) - changed)
    return 0


def _waits_for_result(name: str, kwargs: Any) -> bool:
    """Return whether the host needs a value from the device before it can go on."""
    return name == VALUE or (name in UNKNOWN_SIZE and kwargs.get("output_size") is None)


def _is_waiting_copy(name: str, args: Any, kwargs: Any, result: Any) -> bool:
    """Return whether an operation copies between host and device, and the host waits for it."""
    if name not in ("_to_copy", "copy_"):
        return False
    source, target = (args[1], args[0]) if name == "copy_" else (args[0], result)
    asynchronous = kwargs.get("non_blocking") or (name == "copy_" and len(args) > 2 and args[2])
    return _on_cuda(source) != _on_cuda(target) and not asynchronous


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def _distinct(tensors: Iterable[Tensor]) -> list[Tensor]:
    return list({id(each): each for each in tensors}.values())


def _on_cuda(tensor: Tensor) -> bool:
    return tensor.device.type == "cuda"


def _bytes(tensor: Tensor) -> int:
    """Return the bytes of a tensor's distinct numbers: those that it repeats with a stride of 0 count once."""
    sizes = (size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
    return int(prod(sizes)) * tensor.element_size()
