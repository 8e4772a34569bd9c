"""Device and precision are chosen by what PyTorch finds; what a device cannot do is refused in one line."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from nmt.compute import cores
from nmt.compute import machine as module
from nmt.compute.machine import prepare_machine
from nmt.config.tree import RuntimeConfig
from nmt.data.store import PairStore
from nmt.errors import UserError
from nmt.model.build import build_model
from nmt.training.loss import Losses
from nmt.training.objective import Objective
from nmt.training.statistics import LossSums
from tests.unit.test_precision import Watch
from tests.unit.training.test_trainer import MODEL, TRAINING, VOCABULARY, batches_of, store

__all__ = ["store"]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a function that decides which devices PyTorch finds."""
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    monkeypatch.setattr(module, "keep_memory", lambda: None)
    precision, cudnn = torch.get_float32_matmul_precision(), torch.backends.cuda.cudnn_sdp_enabled()

    def find(gpus: int = 0, apple: bool = False, capability: tuple[int, int] = (8, 0)) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a GPU")
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: apple)

    yield find
    torch.set_float32_matmul_precision(precision)
    torch.backends.cuda.enable_cudnn_sdp(cudnn)


@pytest.mark.parametrize(
    ("settings", "gpus", "apple", "expected"),
    [
        ({}, 2, True, "cuda:1"),
        ({}, 0, True, "mps"),
        ({}, 0, False, "cpu"),
        ({"device": "cpu"}, 2, True, "cpu"),
        ({"device": "cuda"}, 0, True, "runtime.device=cuda, but PyTorch finds no such GPU here"),
        ({"device": "mps"}, 2, False, "runtime.device=mps, but PyTorch finds no such GPU here"),
        ({}, 1, False, "process 2 of this machine has no GPU of its own; there are 1"),
        ({"device": "mps", "compile": True}, 0, True, "runtime.compile=true is not supported on Apple's GPU"),
        ({"device": "mps", "precision": "bf16"}, 0, True, "is slow in bf16: set it to fp16 or fp32"),
    ],
)
def test_a_device_is_chosen_or_refused(
    found: Any, settings: dict[str, Any], gpus: int, apple: bool, expected: str
) -> None:
    found(gpus, apple)
    config = RuntimeConfig(**settings)
    if " " not in expected:
        assert prepare_machine(config, local_rank=1).device == torch.device(expected)
        return
    with pytest.raises(UserError) as refused:
        prepare_machine(config, local_rank=1)
    assert expected in str(refused.value)


def test_gpus_whose_driver_is_too_old_are_refused_instead_of_left_unused(
    found: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found()
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    assert prepare_machine(RuntimeConfig()).device.type == "cpu"  # there is no GPU
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)  # NVML counts them whatever the driver supports
    with pytest.raises(UserError, match=r"has 8 GPUs, .* driver is too old for CUDA 12\.8.* runtime\.device=cpu$"):
        prepare_machine(RuntimeConfig())
    assert prepare_machine(RuntimeConfig(device="cpu")).device.type == "cpu"


@pytest.mark.parametrize(
    ("capability", "fast"), [((6, 1), "fp32"), ((7, 5), "fp16"), ((8, 0), "bf16"), ((9, 0), "bf16"), ((12, 0), "bf16")]
)
def test_gpus_compute_in_the_precision_that_is_fast(found: Any, capability: tuple[int, int], fast: str) -> None:
    found(1, capability=capability)
    torch.backends.cuda.enable_cudnn_sdp(True)  # which prepares itself for each new size
    assert str(prepare_machine(RuntimeConfig())) == f"cuda in {fast}"
    assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert prepare_machine(RuntimeConfig(precision="fp32")).precision == torch.float32
    if fast != "bf16":
        with pytest.raises(UserError, match=f"runtime.precision=bf16, but a GPU is slow in bf16.* chooses {fast}$"):
            prepare_machine(RuntimeConfig(precision="bf16"))


@pytest.mark.parametrize(
    ("vendor", "amx", "avx512_bf16", "precision"),
    [
        ("GenuineIntel", True, True, "bf16"),
        ("GenuineIntel", False, True, "fp32"),  # as fast as float32, and conversions on top
        ("AuthenticAMD", False, True, "bf16"),
        ("", False, False, "fp32"),  # ARM
    ],
)
def test_a_cpu_computes_in_bf16_only_if_that_is_faster(
    monkeypatch: pytest.MonkeyPatch, vendor: str, amx: bool, avx512_bf16: bool, precision: str
) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.setattr(cores, "_cpuinfo", {"vendor_id": vendor}.get)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512_bf16)
    assert prepare_machine(RuntimeConfig(device="cpu")).precision_name == precision
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    assert prepare_machine(RuntimeConfig(device="cpu")).precision_name == "fp32"


def test_training_on_apples_gpu_needs_no_float64(store: PairStore) -> None:
    objective = Objective(build_model(MODEL, VOCABULARY, VOCABULARY), 0.1)
    (batch,) = batches_of(store, TRAINING, 1)
    objective(batch.micro_batches[0])  # makes tables of positions, on the CPU
    with FakeTensorMode():
        sums = LossSums(torch.device("mps"))
    sums.sums = torch.zeros(4, dtype=sums.sums.dtype)
    with Watch(torch.float64) as watching:  # Apple's GPU has no such numbers
        objective(batch.micro_batches[0]).smoothed.backward()
        losses = Losses(torch.tensor(1.5), torch.tensor(0.5))
        sums.add_step([losses, losses], 7, torch.tensor(True))
        sums.add_step([losses], 7, torch.tensor(False))
    assert watching.seen
    assert not watching.found
    assert sums.total().tolist() == [3.0, 1.0, 7.0, 1.0]
