"""Count operations on CUDA tensors: launches, bytes, FLOPs and host reads."""

from math import prod
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

NO_LAUNCH = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
NO_LAUNCH |= {"_unsafe_view", "_reshape_alias", "lift_fresh", "is_same_size", "prim::device"}
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
FORWARD_PRODUCTS, BACKWARD_PRODUCTS = 2, 5
"""Products of one query with one key, or of one weight with one value, in attention; backward repeats the first."""
ATTENTION = {
    "torch_attn::_varlen_attn": (FORWARD_PRODUCTS, 0, 6),
    "torch_attn::_varlen_attn_backward": (BACKWARD_PRODUCTS, 1, 9),
}
"""Products in each operation, and the places of its queries and of the length of the longest sentence."""
KERNELS = {"_forward": (FORWARD_PRODUCTS, 1), "_backward": (BACKWARD_PRODUCTS, 4)}
"""Products in each of Triton's kernels of short attention, which are of whole tiles, and the place of its queries."""


class Counter(TorchDispatchMode):
    """While active, counts all operations on CUDA tensors."""

    def __init__(self) -> None:
        """Begin with nothing counted."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = dict.fromkeys(("launches", "bytes", "flops", "host_reads"), 0)

    def count_wait(self, *_: Any) -> None:
        """Count a call of torch.cuda.synchronize."""
        self.total["host_reads"] += 1

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and count it; one whose result has a size that depends on values raises an exception."""
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        if name == VALUE and _on_cuda(args[0]):
            self.total["host_reads"] += 1
            return 0.0 if args[0].is_floating_point() else 0
        result = func(*args, **kwargs)
        used = _tensors((args, kwargs, result))
        if any(map(_on_cuda, used)) and not _only_views(func) and name not in NO_LAUNCH:
            self.total["launches"] += 1
            self.total["bytes"] += _bytes_moved(func, name, args, kwargs, result)
            self.total["flops"] += _flops(func, args, kwargs, result)
            self.total["host_reads"] += _is_waiting_copy(name, args, kwargs, result)
        return result


def launch(kernel: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> None:
    """Stand for `JITFunction.run`: count the kernel of Triton, and compute nothing."""
    products, queries = KERNELS.get(kernel.__name__, (0, 0))
    for mode in _get_current_dispatch_mode_stack():
        if isinstance(mode, Counter):
            mode.total["launches"] += 1
            mode.total["bytes"] += sum(map(_bytes, _tensors(arguments)))
            if products:
                mode.total["flops"] += 2 * products * int(arguments[queries].numel()) * int(options["key_tile"])


def attend(queries: Tensor, keys: Tensor, values: Tensor, **_: Any) -> Tensor:
    """Stand for `scaled_dot_product_attention`, a single kernel on a GPU, whose output has its heads inside."""
    shape = *queries.shape[:2], queries.shape[2], values.shape[3]
    attended = queries.new_empty(shape[0], shape[2], shape[1], shape[3]).transpose(1, 2)
    launch(attend, attended, queries, keys, values, grid=None, warmup=False)
    return attended


def _flops(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    """Return the FLOPs of an operation; 0 if it contains no matrix product."""
    name = func._schema.name
    if name == "aten::_addmm_activation":  # of bias, rows and matrix
        return 2 * int(args[1].numel()) * int(args[2].shape[1])
    if name in ATTENTION:
        products, queries, longest = ATTENTION[name]
        return 2 * products * int(args[queries].numel()) * int(args[longest])
    known = flop_registry.get(func._overloadpacket)
    return int(known(*args, **kwargs, out_val=result)) if known else 0


def _only_views(func: Any) -> bool:
    returns = func._schema.returns
    return bool(returns) and all(each.alias_info is not None and not each.alias_info.is_write for each in returns)


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
    moved = sum(_bytes(each) for tensors in (read, written) for each in {id(each): each for each in tensors}.values())
    if name in LOOKUPS:
        moved -= max(0, _bytes(args[0]) - _bytes(result))
    elif name in SPARSE_UPDATES:
        moved -= 2 * max(0, _bytes(args[0]) - _tensors(args)[-1].numel() * args[0].element_size())
    return moved


def _is_waiting_copy(name: str, args: Any, kwargs: Any, result: Any) -> bool:
    """Return whether an operation copies between host and device, and the host waits for it."""
    if name not in ("_to_copy", "copy_"):
        return False
    source, target = (args[1], args[0]) if name == "copy_" else (args[0], result)
    asynchronous = kwargs.get("non_blocking") or (name == "copy_" and len(args) > 2 and args[2])
    return _on_cuda(source) != _on_cuda(target) and not asynchronous


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def _on_cuda(tensor: Tensor) -> bool:
    return tensor.device.type == "cuda"


def _bytes(tensor: Tensor) -> int:
    """Return the bytes of a tensor's distinct numbers: those that it repeats with a stride of 0 count once."""
    sizes = (size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
    return int(prod(sizes)) * tensor.element_size()
