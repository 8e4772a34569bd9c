"""The floating-point operations of matrix products and of attention."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils.flop_counter import flop_registry

FORWARD_PRODUCTS, BACKWARD_PRODUCTS = 2, 5
"""Products of one query with one key, or of one weight with one value, in attention; backward repeats the first."""


def flops_of(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    """Return the FLOPs of an operation; 0 if it contains no matrix product."""
    if own := OWN.get(func._schema.name):
        return own(args)
    known = flop_registry.get(func._overloadpacket)
    return int(known(*args, **kwargs, out_val=result)) if known else 0


def _linear(args: Any) -> int:
    """Count `_addmm_activation`, whose arguments are bias, rows and matrix."""
    rows, matrix = args[1:3]
    return 2 * int(rows.numel()) * int(matrix.shape[1])


def _attention(products: int, queries: int, longest: Callable[[Any], int]) -> Callable[[Any], int]:
    """Count attention as if each query attended to as many keys as the longest sentence has."""

    def count(args: Any) -> int:
        tensor: Tensor = args[queries]
        return 2 * products * tensor.numel() * longest(args)

    return count


OWN: dict[str, Callable[[Any], int]] = {
    "aten::_addmm_activation": _linear,
    "torch_attn::_varlen_attn": _attention(FORWARD_PRODUCTS, 0, lambda args: args[6]),
    "torch_attn::_varlen_attn_backward": _attention(BACKWARD_PRODUCTS, 1, lambda args: args[9]),
}
"""Counts by the name of the operation, for those that torch does not count."""


def flops_of_kernel(name: str, args: Any, options: Any) -> int:
    """Return the FLOPs of a kernel of Triton: those of short attention have products, of whole tiles."""
    known = {"_forward": (FORWARD_PRODUCTS, 1), "_backward": (BACKWARD_PRODUCTS, 4)}
    if name not in known:
        return 0
    products, queries = known[name]
    return 2 * products * int(args[queries].numel()) * int(options["key_tile"])
