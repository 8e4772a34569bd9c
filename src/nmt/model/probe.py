"""Try the fast operations of a GPU once, before anything depends on them, and do without those that fail.

Each is compared with plain PyTorch in float64 on the CPU, forward and backward. One that raises an error, or whose
results are wrong, is replaced by its plain version from then on (`nmt.compute.replaced`). On a CPU nothing is tried.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.compute.machine import HALF_PRECISIONS, Machine, check_usable, is_amd
from nmt.compute.replaced import Fast, record, works
from nmt.config.schema import ModelConfig
from nmt.errors import UserError
from nmt.model.activations import activation_of
from nmt.model.attention import Attend, FlashAttend, PaddedAttend, ShortAttend
from nmt.model.attention_choice import flash_obstacle
from nmt.model.fused_attention import FusedPaddedAttend
from nmt.model.kernels.backend import has_flash_attention, has_triton, is_old_gpu, may_have_flash_attention
from nmt.model.kernels.short_attention import TILES, is_suitable
from nmt.model.norms import LAYER, norm_of
from nmt.model.operation_errors import (
    TOLERANCES,
    attention_error,
    largest,
    random_rows,
    rectifier_error,
    relative_error,
    residual_error,
    softmax_error,
)
from nmt.model.packed import Packed

TF32_TOLERANCE = 1.5e-3
"""Largest relative error of a product in TF32, which keeps 11 bits: 4e-4 is usual, and bf16 would have 2.4e-3."""
DROPOUT = 0.1
"""The probability with which dropout is tried; masks do not depend on what else a kernel was compiled for."""
SIDE, NUMBERS = 256, 4096
"""The sizes of the matrices, and of the vectors, that are tried."""


class Trial(NamedTuple):
    """One operation to try."""

    operation: Fast
    error: Callable[[], float]
    """Computes its relative error; may raise any error."""
    tolerance: float


class Wanted(NamedTuple):
    """What a command will do with a model."""

    vocabulary: int = 0
    """The number of target words; 0 if it only translates, without an optimizer and a loss."""
    attention: str = "auto"
    """`runtime.attention`."""
    graphs: bool = False
    """Whether CUDA graphs are asked for."""
    compiled: bool = False
    """Whether to compile the model."""


def failures(model: ModelConfig, machine: Machine, wanted: Wanted) -> dict[Fast, str]:
    """Return why operations fail, after trying those that a model needs on a GPU and that have not failed before.

    Raise a UserError if the GPU cannot be used any more after a failure.
    """
    if machine.device.type != "cuda":
        return {}
    failed: dict[Fast, str] = {}
    for trial in trials(model, machine, wanted):
        needed = [trial.operation, *([Fast.TRITON] if trial.operation in _KERNELS else [])]
        if not all(map(works, needed)):
            continue
        record(trial.operation, reason := reason_of_failure(trial))
        if reason:
            failed[trial.operation] = reason
            _check_alive(machine.device, trial.operation, reason)
    if Fast.TF32 in failed:
        torch.set_float32_matmul_precision("highest")
    return failed


_KERNELS = (Fast.RESIDUAL, Fast.SOFTMAX, Fast.RECTIFIER, Fast.SHORT)
"""Operations that are kernels of Triton."""


def reason_of_failure(trial: Trial) -> str:
    """Return why an operation fails its trial, in one line; empty if it does not."""
    try:
        error = trial.error()
    except Exception as problem:  # of any kind: drivers, compilers and PyTorch have many
        first_line = next(iter(str(problem).strip().splitlines()), "")
        return f"{type(problem).__name__}: {first_line}"[:200]
    if error <= trial.tolerance:  # not true of NaN
        return ""
    return f"its relative error is {error:.2g}, but at most {trial.tolerance:g} is rounding"


def trials(model: ModelConfig, machine: Machine, wanted: Wanted) -> Iterator[Trial]:
    """Yield the trials of the operations that a model needs, in the sizes that its kernels are compiled for."""
    device, precision = machine
    tolerance = TOLERANCES[precision]
    if has_triton() and not is_old_gpu(device):
        yield Trial(Fast.TRITON, partial(residual_error, device, precision, 0.0, norm=False), tolerance)
        fused_norm = model.norm_placement == "post" and norm_of(model) is LAYER
        error = partial(residual_error, device, precision, DROPOUT, width=model.d_model, norm=fused_norm)
        yield Trial(Fast.RESIDUAL, error, tolerance)
    yield from _attention_trials(model, machine, wanted)
    if wanted.compiled and is_amd():
        yield Trial(Fast.COMPILED, partial(compiled_attention_error, model, machine), tolerance)
    yield Trial(Fast.TF32, partial(product_error, device), TF32_TOLERANCE)
    yield Trial(Fast.PINNED, partial(copy_error, device), 0.0)
    if not wanted.vocabulary:
        return
    yield Trial(Fast.SOFTMAX, partial(softmax_error, device, precision, wanted.vocabulary), tolerance)
    if precision in HALF_PRECISIONS and activation_of(model).saved_tensors == 1:
        yield Trial(Fast.RECTIFIER, partial(rectifier_error, device, precision, model.d_ff), tolerance)
    yield Trial(Fast.OPTIMIZER, partial(optimizer_error, device), TOLERANCES[torch.float32])
    if wanted.graphs:
        yield Trial(Fast.GRAPHS, partial(graph_error, device), 0.0)


def _attention_trials(model: ModelConfig, machine: Machine, wanted: Wanted) -> Iterator[Trial]:
    (device, precision), kind = machine, wanted.attention
    if kind == "padded" or flash_obstacle(model):
        return
    widths, tolerance = (model.key_size, model.value_size), TOLERANCES[precision]

    def error(attend: Callable[..., FlashAttend | ShortAttend | FusedPaddedAttend], longest: int = TILES[-1]) -> float:
        each = partial(attention_error, attend, device, precision, widths=widths, longest=longest)
        return largest(each(causal=causal) for causal in (False, True))

    if may_have_flash_attention(device, precision):
        yield Trial(Fast.FLASH, partial(error, FlashAttend), tolerance)
    elif precision == torch.float16:
        yield Trial(Fast.PADDED, partial(error, partial(FusedPaddedAttend, precision=precision)), tolerance)
    suits = is_suitable(max(widths), precision) and has_triton() and not is_old_gpu(device)
    if kind == "short" or (kind == "auto" and suits and wanted.vocabulary):  # translation encodes a text only once
        yield Trial(Fast.SHORT, lambda: largest(error(ShortAttend, tile) for tile in TILES), tolerance)


def compiled_attention_error(model: ModelConfig, machine: Machine) -> float:
    """Return the error of compiled attention: what the compiler takes flash attention to return, AMD's may not."""
    device, precision = machine
    kind = FlashAttend if has_flash_attention(device, precision) and not flash_obstacle(model) else PaddedAttend

    def attend(queries: Packed, keys: Packed, *, causal: bool) -> Attend:
        compiled: Attend = torch.compile(kind(queries, keys, causal=causal).__call__, dynamic=True)
        return compiled

    widths = (model.key_size, model.value_size)
    return largest(attention_error(attend, device, precision, causal=each, widths=widths) for each in (False, True))


def product_error(device: torch.device) -> float:
    """Return the error of a product in the precision that float32 products have in this process."""
    left, right = (random_rows(SIDE, SIDE, dtype=torch.float32, seed=seed) for seed in (1, 2))
    return relative_error(left.to(device) @ right.to(device), left.double() @ right.double())


def copy_error(device: torch.device) -> float:
    """Return the error of copies that the process does not wait for, to the device and back."""
    numbers = random_rows(NUMBERS, dtype=torch.float32)
    there = numbers.pin_memory(device).to(device, non_blocking=True)
    back = torch.empty(NUMBERS, pin_memory=True).copy_(there, non_blocking=True)
    torch.cuda.synchronize(device)
    return relative_error(back, numbers.double())


def optimizer_error(device: torch.device) -> float:
    """Return the error of two steps of the fused optimizer, the second of which it is told to skip."""
    start, gradient = (random_rows(NUMBERS, dtype=torch.float32, seed=seed) for seed in (1, 2))
    results: list[Tensor] = []
    for place, dtype, fused in ((device, torch.float32, True), (torch.device("cpu"), torch.float64, False)):
        weights = nn.Parameter(start.to(place, dtype, copy=True))
        optimizer = torch.optim.AdamW([weights], lr=0.1, betas=(0.9, 0.98), eps=1e-9, fused=fused)
        for skipped in (False, True):
            weights.grad = gradient.to(place, dtype)
            if fused:
                optimizer.found_inf = torch.full((), float(skipped), device=place)  # type: ignore[attr-defined]
            if fused or not skipped:
                optimizer.step()
        results.append(weights)
    return relative_error(*results)


def graph_error(device: torch.device) -> float:
    """Return the error of an operation that is recorded as a CUDA graph, and replayed with other numbers."""
    numbers = torch.zeros(NUMBERS, device=device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        doubled = 2 * numbers
    values = random_rows(NUMBERS, dtype=torch.float32)
    numbers.copy_(values)
    graph.replay()
    return relative_error(doubled, 2 * values.double())


def _check_alive(device: torch.device, operation: Fast, reason: str) -> None:
    """Refuse a GPU that does nothing any more."""
    try:
        check_usable(device)
    except Exception as error:  # of any kind
        remedy = "runtime.attention=padded" if operation in (Fast.FLASH, Fast.SHORT) else "runtime.device=cpu"
        raise UserError(
            f"{operation} fails on {torch.cuda.get_device_name(device)} ({reason}), which cannot be used after that: "
            f"install another build of PyTorch, or set {remedy}"
        ) from error
