"""Which fast operations of the device failed when they were tried, so that plain ones take their place."""

import sys
from collections.abc import Mapping
from enum import StrEnum


class Fast(StrEnum):
    """An operation that is faster than a plain one, and that a device or a build of PyTorch may not have."""

    TRITON = "Triton's kernels"
    RESIDUAL = "the fused residual connection"
    SOFTMAX = "the fused gradient of the softmax"
    RECTIFIER = "the fused gradient of the rectifier"
    FLASH = "flash attention"
    SHORT = "short attention"
    PADDED = "PyTorch's fused attention"
    OPTIMIZER = "the fused optimizer"
    TF32 = "products in TF32"
    GRAPHS = "CUDA graphs"
    PINNED = "copies from page-locked memory"
    COMPILED = "compiled attention"


_reasons: dict[Fast, str] = {}
"""Why operations failed; empty for those that worked. Operations that were not tried are missing."""


def record(operation: Fast, reason: str) -> None:
    """Remember that an operation was tried, and why it failed, if so. What has failed once stays replaced."""
    _reasons[operation] = _reasons.get(operation) or reason


def replace_all(failed: Mapping[Fast, str], *, say: bool) -> None:
    """Replace operations by plain ones, given why they failed; with `say`, print a line about each."""
    for operation, reason in failed.items():
        record(operation, reason)
        if say:
            message = f"{operation} failed a trial on this device, so a plain version replaces it: {reason}"
            print(f"warning: {message}", file=sys.stderr, flush=True)


def works(operation: Fast) -> bool:
    """Return whether an operation has not failed."""
    return not _reasons.get(operation)


def is_proven(operation: Fast) -> bool:
    """Return whether an operation was tried and works."""
    return operation in _reasons and works(operation)


def replaced() -> Mapping[str, str]:
    """Return the operations that failed, with the reasons."""
    return {operation.value: reason for operation, reason in _reasons.items() if reason}


def forget() -> None:
    """Forget all trials, for another device or a test."""
    _reasons.clear()
