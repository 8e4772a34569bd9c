"""Count the operations of a training step on a fake device: launches, bytes, FLOPs and host reads."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

ALLOCATIONS = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
VIEWS = {"_unsafe_view", "_reshape_alias", "_local_scalar_dense", "lift_fresh", "is_same_size", "prim::device"}
"""Operations without a launch, beyond those whose schema says that they return views."""
OVERWRITES = {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "bernoulli_"}
"""Operations that write their first argument without reading it; also their `_foreach_` forms."""
TEMPLATES = {"new_full", "new_zeros", "new_ones", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like"}
"""Operations that take a tensor for its type and device only, and do not read it."""
GATHERS = {"gather", "index_select", "embedding", "index"}
"""Operations that read as many numbers of their first argument as they return."""
SCATTERS = {"scatter_add_", "scatter_", "index_add_", "index_put_", "index_copy_"}
"""Operations that change as many numbers of their first argument as their last has."""
DYNAMIC = {"nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive"}
"""Operations whose results have a size that only the device knows, so that the host waits for it."""


@dataclass
class Operation:
    """All calls of one operation in one phase."""

    launches: int = 0
    bytes: int = 0
    """Bytes read and written, where the result of an operation in place is both."""
    bytes_once: int = 0
    """Bytes by the simpler rule: each tensor that an operation takes or returns counts once."""
    flops: int = 0
    seconds: float = 0.0
    host_reads: int = 0

    def add(self, other: "Operation") -> None:
        """Add other calls."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


Clock = Callable[[int, int, torch.dtype], float]
"""The seconds that an operation takes, given its bytes, its FLOPs and the type of its products."""


@dataclass
class Counter(TorchDispatchMode):
    """While active, counts each operation on CUDA tensors under the name of the current phase."""

    clock: Clock
    operations: dict[tuple[str, str], Operation] = field(default_factory=dict)
    """By phase and name."""
    current_phase: str = "other"

    def __post_init__(self) -> None:
        super().__init__()

    def __hash__(self) -> int:
        return id(self)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the operations of this block under this name."""
        before, self.current_phase = self.current_phase, name
        try:
            yield
        finally:
            self.current_phase = before

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and count it."""
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        inputs = _tensors((args, kwargs))
        waits = any(_on_cuda(each) for each in inputs) and (name == "_local_scalar_dense" or name in DYNAMIC)
        result = _placeholder(name, inputs[0]) if waits else func(*args, **kwargs)
        call = self._measure(func, name, args, kwargs, result)
        call.host_reads = int(waits or _copies_and_waits(name, args, kwargs, result))
        self.operations.setdefault((self.current_phase, name), Operation()).add(call)
        return result

    def _measure(self, func: Any, name: str, args: Any, kwargs: Any, result: Any) -> Operation:
        used = _tensors((args, kwargs, result))
        if not any(_on_cuda(each) for each in used) or not _launches(func, name):
            return Operation()
        read, written = traffic(func, name, args, kwargs, result)
        moved = sum(map(_bytes, read)) + sum(map(_bytes, written))
        moved -= _untouched(name, args, result)
        flops = (
            flop_registry[func._overloadpacket](*args, **kwargs, out_val=result)
            if func._overloadpacket in flop_registry
            else 0
        )
        once = sum(each.numel() * each.element_size() for each in _distinct(used))
        return Operation(1, moved, once, flops, self.clock(moved, flops, used[0].dtype))


def traffic(func: Any, name: str, args: Any, kwargs: Any, result: Any) -> tuple[list[Tensor], list[Tensor]]:
    """Return the tensors that an operation reads and those that it writes, as its schema declares them."""
    read: list[Tensor] = []
    written: list[Tensor] = []
    overwrites = name.removeprefix("_foreach_") in OVERWRITES
    for index, argument in enumerate(func._schema.arguments):
        value = args[index] if index < len(args) else kwargs.get(argument.name)
        tensors = _tensors(value)
        changed = argument.alias_info is not None and argument.alias_info.is_write
        if changed:
            written += tensors
        if name not in TEMPLATES and not (changed and (argument.is_out or overwrites)):
            read += tensors
    results = result if isinstance(result, tuple) else (result,)
    for declared, value in zip(func._schema.returns, results, strict=False):
        if declared.alias_info is None:
            written += _tensors(value)
    return _distinct(read), _distinct(written)


def _launches(func: Any, name: str) -> bool:
    """Return whether an operation starts work on the device: not if it only allocates memory or returns views."""
    if name in ALLOCATIONS or name in VIEWS:
        return False
    returns = func._schema.returns
    views = bool(returns) and all(each.alias_info is not None and not each.alias_info.is_write for each in returns)
    return not views


def _untouched(name: str, args: Any, result: Any) -> int:
    """Return the bytes of a large table that a lookup or a sparse update does not touch."""
    if name in GATHERS and isinstance(result, Tensor):
        return max(0, _bytes(args[0]) - _bytes(result))
    if name in SCATTERS:
        source = next((each for each in reversed(args) if isinstance(each, Tensor)), args[0])
        return 2 * max(0, _bytes(args[0]) - source.numel() * args[0].element_size())
    return 0


def _copies_and_waits(name: str, args: Any, kwargs: Any, result: Any) -> bool:
    """Return whether an operation is a copy between host and device for which the host waits."""
    if name not in ("_to_copy", "copy_"):
        return False
    asynchronous = kwargs.get("non_blocking") or (name == "copy_" and len(args) > 2 and args[2])
    source = args[1] if name == "copy_" else args[0]
    target = args[0] if name == "copy_" else result
    return _on_cuda(source) != _on_cuda(target) and not asynchronous


def _placeholder(name: str, tensor: Tensor) -> Any:
    """Return a result in place of one that depends on values, which fake tensors do not have."""
    if name == "_local_scalar_dense":
        return torch.zeros((), dtype=tensor.dtype, device="cpu").numpy().item()
    if name == "nonzero":
        return tensor.new_empty((tensor.numel(), tensor.dim()), dtype=torch.int64)
    raise NotImplementedError(f"{name} returns a tensor whose size only the device knows")


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def _distinct(tensors: Iterable[Tensor]) -> list[Tensor]:
    return list({id(each): each for each in tensors}.values())


def _on_cuda(tensor: Tensor) -> bool:
    return tensor.device.type == "cuda"


def _bytes(tensor: Tensor) -> int:
    """Return the bytes of the distinct numbers of a tensor: those that it repeats by a stride of 0 count once."""
    sizes = (size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
    return int(prod(sizes)) * tensor.element_size()
