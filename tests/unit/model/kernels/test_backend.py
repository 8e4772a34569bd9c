"""Which tensors Triton's kernels compute on."""

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from nmt.compute.machine import BF16_CAPABILITY, Machine
from nmt.errors import UserError
from nmt.model.kernels import backend, choice


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
