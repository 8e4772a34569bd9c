"""The precision that a machine computes in, by what its GPU can do."""

from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from nmt.compute.machine import BF16_CAPABILITY, Machine, prepare_machine
from nmt.config.model import ModelConfig
from nmt.config.tree import RuntimeConfig
from nmt.data.shapes import Shapes
from nmt.errors import UserError
from nmt.model.attention import AttentionSpec, FusedPaddedAttend, PaddedAttend
from nmt.model.backends.cuda import Cuda, FlashAttend
from nmt.model.packed import Packed

pytest.importorskip("triton", reason="comes with PyTorch's builds for GPUs")
from nmt.model.backends.triton import Triton
from nmt.model.kernels.short_attention import ShortAttend


def machine_with(capability: tuple[int, int], precision: str) -> Machine:
    """Return the machine that is chosen where the only GPU has this compute capability."""
    with patch.multiple(
        torch.cuda,
        is_available=lambda: True,
        device_count=lambda: 1,
        set_device=lambda _: None,
        get_device_capability=lambda _: capability,
        get_device_name=lambda _: "Tesla T4",
    ):
        threads, matmul_precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
        try:
            return prepare_machine(RuntimeConfig(device="cuda", precision=precision))
        finally:
            torch.set_num_threads(threads)
            torch.set_float32_matmul_precision(matmul_precision)


@pytest.mark.parametrize("capability", [(7, 0), (7, 5)], ids=["V100", "T4"])
def test_gpus_without_bf16_compute_in_fp16(capability: tuple[int, int]) -> None:
    machine = machine_with(capability, "auto")
    assert machine.precision == machine_with(capability, "fp16").precision == torch.float16
    assert str(machine) == "cuda in fp16"
    assert machine_with(capability, "fp32").precision == torch.float32
    with pytest.raises(UserError, match=r"runtime\.precision=bf16, but Tesla T4 is slow in bf16") as refused:
        machine_with(capability, "bf16")
    assert str(refused.value).endswith("set it to fp16 or fp32, or to auto, which chooses fp16")
    assert len(str(refused.value).splitlines()) == 1


def test_older_gpus_compute_in_fp32_because_fp16_is_not_faster() -> None:
    machine = machine_with((6, 1), "auto")
    assert machine.precision == torch.float32
    with pytest.raises(UserError, match="which chooses fp32"):
        machine_with((6, 1), "bf16")


@pytest.mark.parametrize("capability", [(8, 0), (8, 9), (9, 0), (12, 0)])
def test_newer_gpus_compute_in_bf16(capability: tuple[int, int]) -> None:
    assert machine_with(capability, "auto").precision == torch.bfloat16
    assert machine_with(capability, "bf16").precision == torch.bfloat16
    assert machine_with(capability, "fp32").precision == torch.float32


@pytest.mark.parametrize(
    ("capability", "precision", "expected"),
    [
        ((7, 0), "auto", FusedPaddedAttend),
        ((7, 5), "fp16", FusedPaddedAttend),
        ((7, 5), "fp32", PaddedAttend),
        ((8, 0), "auto", FlashAttend),
        ((8, 0), "fp16", FlashAttend),
    ],
)
def test_flash_attention_is_chosen_only_on_gpus_that_have_it(
    capability: tuple[int, int], precision: str, expected: type
) -> None:
    machine, device = machine_with(capability, precision), torch.device("cuda")
    with patch("nmt.model.backends.cuda.has_bf16", return_value=capability >= BF16_CAPABILITY):
        with FakeTensorMode():
            numbers = torch.empty(4, dtype=torch.int64, device=device)
            stream = Packed(numbers, numbers, torch.empty(3, dtype=torch.int32, device=device), 2)
            spec = AttentionSpec(stream, stream, causal=True, head_width=64, precision=machine.precision)
            assert type(Cuda(device).attention(spec)) is expected
            assert type(Cuda(device).attention(replace(spec, dropout=0.1))) is PaddedAttend
        # padded attention would compute sentences without tokens, too
        assert Shapes.on(machine, ModelConfig(), 1000).buckets == (expected is FlashAttend)


@pytest.mark.parametrize(
    ("width", "longest", "expected"), [(64, 128, ShortAttend), (65, 128, FlashAttend), (64, 129, FlashAttend)]
)
def test_short_sentences_are_tiles_with_triton(width: int, longest: int, expected: type) -> None:
    with FakeTensorMode():
        numbers = torch.empty(4, dtype=torch.int64, device="cuda")
        stream = Packed(numbers, numbers, torch.empty(3, dtype=torch.int32, device="cuda"), longest)
        spec = AttentionSpec(stream, stream, causal=True, head_width=width, precision=torch.bfloat16)
        with patch("nmt.model.backends.cuda.has_bf16", return_value=True):
            assert type(Triton(torch.device("cuda")).attention(spec)) is expected


def test_triton_that_cannot_compile_is_an_error_that_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("Python.h: No such file\nand more")

    monkeypatch.setattr(Triton, "residual", fail)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a GPU")
    with pytest.raises(UserError, match=r"for a GPU \(Python.h: No such file\): .* or set runtime.kernels=false$"):
        Triton(torch.device("cpu")).try_out()


def test_attention_on_a_gpu_is_never_that_of_cudnn() -> None:
    """It prepares itself for each new size, and each step of a beam search has a new one."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(True)
    try:
        machine_with((9, 0), "auto")
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
