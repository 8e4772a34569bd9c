"""The device of a process is chosen by what PyTorch finds; what a device cannot do is refused in one line."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from nmt.compute import cores
from nmt.compute import machine as module
from nmt.compute.machine import (
    Machine,
    is_out_of_memory,
    prepare_machine,
)
from nmt.config.registry import CHOICES
from nmt.config.tree import RuntimeConfig
from nmt.data.store import PairStore
from nmt.errors import CommonError, UserError
from nmt.model.build import build_model
from nmt.training.loss import Losses
from nmt.training.objective import Objective
from nmt.training.statistics import LossSums
from tests.unit.training.test_trainer import MODEL, TRAINING, VOCABULARY, batches_of, store

__all__ = ["store"]
MPS = torch.device("mps")


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that decides which devices PyTorch finds."""
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    monkeypatch.setattr(module, "keep_memory", lambda: None)

    def find(*, gpus: int = 0, apple: bool = False) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (8, 0))
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: apple)

    return find


@pytest.mark.parametrize(
    ("gpus", "apple", "chosen"), [(2, False, "cuda:1"), (2, True, "cuda:1"), (0, True, "mps"), (0, False, "cpu")]
)
def test_auto_prefers_a_cuda_device_then_apples_gpu(found: Any, gpus: int, apple: bool, chosen: str) -> None:
    found(gpus=gpus, apple=apple)
    assert prepare_machine(RuntimeConfig(), local_rank=1).device == torch.device(chosen)
    assert prepare_machine(RuntimeConfig(device="cpu"), local_rank=1).device == torch.device("cpu")


@pytest.mark.parametrize(("device", "gpus", "apple"), [("cuda", 0, True), ("cuda", 0, False), ("mps", 1, False)])
def test_a_device_that_is_not_there_is_an_error(found: Any, device: str, gpus: int, apple: bool) -> None:
    found(gpus=gpus, apple=apple)
    with pytest.raises(UserError, match=f"runtime.device={device}, but PyTorch finds no such GPU here"):
        prepare_machine(RuntimeConfig(device=device))


def test_a_process_without_a_gpu_of_its_own_is_an_error(found: Any) -> None:
    found(gpus=2)
    with pytest.raises(UserError, match="process 3 of this machine has no GPU of its own; there are 2"):
        prepare_machine(RuntimeConfig(), local_rank=2)


@pytest.mark.parametrize("device", ["auto", "cuda"])
def test_gpus_whose_driver_is_too_old_are_refused_instead_of_left_unused(
    found: Any, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    found()
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    assert prepare_machine(RuntimeConfig(device="auto")).device.type == "cpu"  # there is no GPU
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)  # NVML counts them whatever the driver supports
    with pytest.raises(UserError, match=r"has 8 GPUs, .* driver is too old for CUDA 12\.8.* runtime\.device=cpu$"):
        prepare_machine(RuntimeConfig(device=device))
    assert prepare_machine(RuntimeConfig(device="cpu")).device.type == "cpu"


@pytest.mark.parametrize(
    ("message", "is_memory"),
    [
        ("CUDA error: out of memory", True),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True),
        ("CUDA error: an illegal memory access was encountered", False),
    ],
)
def test_all_errors_about_memory_are_recognised(message: str, is_memory: bool) -> None:
    assert is_out_of_memory(RuntimeError(message)) == is_memory


def test_apples_gpu_computes_in_fp16_and_refuses_what_was_never_tried(found: Any) -> None:
    found(apple=True)
    config = RuntimeConfig(device="mps")
    assert prepare_machine(config) == Machine(MPS, torch.float16)
    assert prepare_machine(replace(config, precision="fp32")) == Machine(MPS, torch.float32)
    with pytest.raises(UserError, match=r"precision=bf16, but .* is slow in bf16: set it to fp16 or fp32"):
        prepare_machine(replace(config, precision="bf16"))
    with pytest.raises(CommonError, match=r"runtime\.compile=true is not supported on Apple's GPU"):
        prepare_machine(replace(config, compile=True))


@pytest.mark.parametrize(
    ("vendor", "amx", "avx512_bf16", "precision"),
    [
        ("GenuineIntel", True, True, "bf16"),
        ("GenuineIntel", False, True, "fp32"),  # as fast as float32, and conversions on top
        ("AuthenticAMD", False, True, "bf16"),
        ("AuthenticAMD", False, False, "fp32"),
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


class NoFloat64(TorchDispatchMode):
    """Refuses float64, which Apple's GPU does not have."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for each in tree_leaves(result):
            assert not (isinstance(each, Tensor) and each.dtype == torch.float64), function
        return result


def test_the_sums_of_losses_on_apples_gpu_need_no_float64() -> None:
    with FakeTensorMode():
        sums = LossSums(MPS)
        assert sums.sums.device.type == "mps"
    sums.sums = torch.zeros(4, dtype=sums.sums.dtype)
    with NoFloat64():  # type: ignore[no-untyped-call]
        losses = Losses(torch.tensor(1.5), torch.tensor(0.5))
        sums.add_step([losses, losses], 7, torch.tensor(True))
        sums.add_step([losses], 7, torch.tensor(False))
        sums.add_held_out(losses, torch.tensor(3))
    assert sums.total().dtype == torch.float64
    assert sums.total().tolist() == [4.5, 1.5, 10.0, 1.0]


@pytest.mark.parametrize("positions", CHOICES["model.positions"])
def test_a_pass_after_the_first_needs_no_float64(store: PairStore, positions: str) -> None:
    objective = Objective(build_model(replace(MODEL, positions=positions), VOCABULARY, VOCABULARY), 0.1)
    (batch,) = batches_of(store, TRAINING, 1)
    objective(batch.micro_batches[0])  # makes tables of positions, on the CPU
    with NoFloat64():  # type: ignore[no-untyped-call]
        objective(batch.micro_batches[0]).smoothed.backward()
