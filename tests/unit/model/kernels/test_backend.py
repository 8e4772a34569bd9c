"""Which tensors Triton's kernels compute on."""

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from nmt.compute.machine import BF16_CAPABILITY, Machine
from nmt.errors import UserError
from nmt.model.kernels import backend, choice, rectifier, residual, short_attention, softmax


@pytest.mark.parametrize(
    ("capability", "dtype", "installed", "expected"),
    [
        ((9, 0), torch.bfloat16, True, True),
        ((8, 0), torch.float32, True, True),
        ((7, 5), torch.float32, True, False),
        ((9, 0), torch.float64, True, False),
        ((9, 0), torch.bfloat16, False, False),
    ],
)
def test_recent_gpus_use_triton(
    capability: tuple[int, int],
    dtype: torch.dtype,
    installed: bool,
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backend, "has_triton", lambda: installed)
    monkeypatch.setattr(backend, "_has_bf16", lambda device: capability >= BF16_CAPABILITY)
    with FakeTensorMode():
        assert backend.uses_triton(torch.empty(1, dtype=dtype, device="cuda")) is expected


def test_triton_that_cannot_compile_is_an_error_that_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Tensor:
        raise RuntimeError("Python.h: No such file\nand more")

    monkeypatch.setattr(choice, "has_fused_residual", lambda device: True)
    monkeypatch.setattr(choice, "dropout_add", fail)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")
    with pytest.raises(UserError, match=r"for a GPU \(Python.h: No such file\): .* or set runtime.kernels=false$"):
        choice.use_kernels(Machine(torch.device("cpu"), torch.float32), wanted=True)


def test_kernels_that_are_not_wanted_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "_is_installed", lambda: True)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    numbers = torch.zeros(3)
    try:
        for wanted in (False, True):
            choice.use_kernels(Machine(numbers.device, torch.float32), wanted=wanted)
            assert backend.uses_triton(numbers) is wanted
    finally:
        choice.use_kernels(Machine(numbers.device, torch.float32), wanted=False)
        backend.want_triton(True)


def test_a_call_is_traced_if_a_compiler_or_a_mode_sees_it() -> None:
    assert not backend.is_traced()
    with TorchDispatchMode():
        assert backend.is_traced()
    assert torch.compile(lambda number: number + int(backend.is_traced()), backend="eager")(torch.zeros(())) == 1


SEED, OFFSETS = torch.tensor([7]), torch.tensor([0, 2, 6])


def fused(leaves: list[Tensor]) -> list[Tensor]:
    """Return the results of all fused operations on these tensors: (6, 8), (6, 8), (8,) and (8,)."""
    stream, branch, gain, bias = leaves
    queries, keys = stream.view(6, 2, 4), branch.view(6, 2, 4)
    return [
        residual.dropout_add_norm(stream, branch, gain, bias, 0.3, SEED, 1),
        residual.dropout_add(stream, branch, 0.3, SEED, 2),
        short_attention.short_attention(queries, keys, queries, OFFSETS, OFFSETS, 4, 4, causal=True),
        *rectifier.rectifier_gradient(branch.detach(), stream.detach().relu()),
        *softmax.softmax_gradient_(branch.detach().clone(), torch.arange(6), 0.1),
    ]


def results_and_operations() -> tuple[list[Tensor], set[str]]:
    """Return the results with their gradients, and the names of the custom operations that were called."""
    torch.manual_seed(1)
    leaves = [torch.randn(shape, requires_grad=True) for shape in ((6, 8), (6, 8), (8,), (8,))]
    with torch.autograd.profiler.profile() as profile:
        results = fused(leaves)
        torch.stack([each.square().sum() for each in results[:3]]).sum().backward()
    names = {event.name for event in profile.function_events if event.name.startswith("nmt::")}
    return [*(each.detach() for each in results), *(each.grad for each in leaves if each.grad is not None)], names


def test_kernels_are_launched_without_the_dispatcher_and_with_it_if_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    directly, none = results_and_operations()
    assert none == set()
    for module in (residual, rectifier, short_attention, softmax):
        monkeypatch.setattr(module, "is_traced", lambda: True)
    dispatched, names = results_and_operations()
    assert len(names) == 8  # all but the two operations without a backward pass have two
    assert len(directly) == len(dispatched) == 11
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(directly, dispatched, strict=True))
