"""The precision that a machine computes in, by what its GPU can do."""

from unittest.mock import patch

import pytest
import torch

from nmt.compute.machine import Machine, prepare_machine
from nmt.config.schema import RuntimeConfig
from nmt.errors import UserError
from nmt.model.attention import FlashAttend, PaddedAttend
from nmt.model.attention_plan import AttentionSpec, plan_attention
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
    ):
        threads, matmul_precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
        try:
            return prepare_machine(RuntimeConfig(device="cuda", precision=precision))
        finally:
            torch.set_num_threads(threads)
            torch.set_float32_matmul_precision(matmul_precision)


@pytest.mark.parametrize("capability", [(7, 0), (7, 5)], ids=["V100", "T4"])
def test_gpus_without_bf16_compute_in_float32(capability: tuple[int, int]) -> None:
    for precision in ("auto", "fp32"):
        assert machine_with(capability, precision).precision == torch.float32
    with pytest.raises(UserError, match=r"runtime\.precision=bf16, but Tesla T4 has no bf16") as refused:
        machine_with(capability, "bf16")
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("capability", [(8, 0), (8, 9), (9, 0), (12, 0)])
def test_newer_gpus_compute_in_bf16(capability: tuple[int, int]) -> None:
    assert machine_with(capability, "auto").precision == torch.bfloat16
    assert machine_with(capability, "bf16").precision == torch.bfloat16
    assert machine_with(capability, "fp32").precision == torch.float32


@pytest.mark.parametrize(
    ("capability", "plan"), [((7, 5), PaddedAttend), ((8, 0), FlashAttend)], ids=["without", "with"]
)
def test_flash_attention_is_chosen_only_on_gpus_that_have_it(capability: tuple[int, int], plan: type) -> None:
    stream = Packed.from_sentences([[5, 6], [7, 8]])
    precision = machine_with(capability, "auto").precision
    with patch.object(torch.Tensor, "is_cuda", True):
        chosen = plan_attention(AttentionSpec(stream, stream, causal=True, head_width=64, precision=precision))
    assert isinstance(chosen, plan)
