"""Which tensors Triton's kernels compute on."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from nmt.compute.machine import BF16_CAPABILITY
from nmt.model.kernels import backend


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
