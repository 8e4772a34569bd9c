"""Which data sheet a device has, and what takes its place."""

import pytest
import torch

from nmt.compute.machine import Machine
from nmt.estimate.hardware import known_device
from nmt.features.doctor import data_sheet


@pytest.mark.parametrize(
    ("name", "gigabytes", "kind"),
    [
        ("NVIDIA H100 80GB HBM3", 85, "h100"),
        ("NVIDIA H100 PCIe", 85, "h100"),
        ("NVIDIA H200", 150, "h200"),
        ("NVIDIA A100-SXM4-40GB", 42, "a100"),
        ("Tesla V100-SXM2-16GB", 17, "v100"),
        ("Tesla V100-SXM2-32GB", 34, "v100-32gb"),
        ("Tesla T4", 16, "t4"),
        ("NVIDIA L4", 24, "l4"),
        ("NVIDIA L40S", 48, "l40s"),
        ("NVIDIA GeForce RTX 4090", 25, "rtx4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 17, ""),
        ("NVIDIA L40", 48, ""),
        ("AMD Instinct MI300X", 206, ""),
    ],
)
def test_a_gpu_is_known_by_the_name_that_it_gives_itself(name: str, gigabytes: float, kind: str) -> None:
    assert known_device(name, 1e9 * gigabytes) == kind


def test_the_kind_of_a_device_without_a_data_sheet_is_a_plain_name_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_sheet, "device_name", lambda _: "AMD ../Ryzen™ 9 (x)")
    assert data_sheet.sheet_of(torch.device("cpu")) == ("amd-ryzen-9-x", None)
    monkeypatch.setattr(data_sheet, "device_name", lambda _: "///")
    assert data_sheet.sheet_of(torch.device("cpu")).kind == "cpu"


def test_measured_peaks_take_the_place_of_a_data_sheet() -> None:
    found = [
        data_sheet.Peak("fp32", flops_per_second=2e12),
        data_sheet.Peak("bf16", flops_per_second=9e12),
        data_sheet.Peak("copy", bytes_per_second=5e10),
    ]
    sheet = data_sheet.sheet_from(found, Machine(torch.device("cpu"), torch.bfloat16))
    assert (sheet.peak("bf16"), sheet.peak("fp32"), sheet.bandwidth) == (9e12, 2e12, 5e10)
