"""The precision that a machine computes in, by what its GPU can do."""

from unittest.mock import patch

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from nmt.compute.machine import BF16_CAPABILITY, Machine, prepare_machine
from nmt.config.model import ModelConfig
from nmt.config.tree import RuntimeConfig
from nmt.data.shapes import Shapes
from nmt.errors import UserError
from nmt.model.attention import FlashAttend, PaddedAttend
from nmt.model.attention_choice import plan_for
from nmt.model.attention_plan import AttentionSpec, Plan, plan_attention
from nmt.model.fused_attention import FusedPaddedAttend
from nmt.model.kernels import backend
from nmt.model.packed import Packed


def machine_with(capability: tuple[int, int], precision: str) -> Machine:
    """Return the machine that is chosen where the only GPU has this compute capability."""
    with patch.multiple(
        torch.cuda,
        is_available=lambda: True,
        device_count=lambda: 1,
        set_device=lambda _: None,
        get_device_capability=lambda _: capability,
        get_device_name=lambda _: "Tesla T4",
        get_arch_list=list,  # a build for GPUs of NVIDIA may lack kernels for old ones
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
    with pytest.raises(UserError, match=r"runtime\.precision=bf16, but Tesla T4 has no bf16") as refused:
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
@pytest.mark.parametrize("plan", [plan_attention, None], ids=["model", "settings"])
def test_flash_attention_is_chosen_only_on_gpus_that_have_it(
    capability: tuple[int, int], precision: str, expected: type, plan: Plan | None
) -> None:
    machine = machine_with(capability, precision)
    with patch("nmt.model.attention_choice.has_triton", return_value=False):  # with Triton it is short attention
        plan = plan or plan_for("auto", "cuda", machine.precision, ModelConfig())
    with patch.object(backend, "_has_bf16", return_value=capability >= BF16_CAPABILITY):
        with FakeTensorMode():
            numbers = torch.empty(4, dtype=torch.int64, device="cuda")
            stream = Packed(numbers, numbers, torch.empty(3, dtype=torch.int32, device="cuda"), 2)
            chosen = plan(AttentionSpec(stream, stream, causal=True, head_width=64, precision=machine.precision))
        assert type(chosen) is expected
        # padded attention would compute sentences without tokens, too
        assert Shapes.on(machine, ModelConfig(), 1000).buckets == (expected is FlashAttend)


def test_attention_on_a_gpu_is_never_that_of_cudnn() -> None:
    """It prepares itself for each new size, and each step of a beam search has a new one."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(True)
    try:
        machine_with((9, 0), "auto")
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
