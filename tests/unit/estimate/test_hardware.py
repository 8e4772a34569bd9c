"""Estimates for devices, against the paper's arithmetic."""

import timeit

import pytest
import torch

from nmt.compute.machine import Machine
from nmt.errors import ConfigError
from nmt.estimate.hardware import DEVICES, estimate, find_device, measured_peak, precision_on


@pytest.mark.parametrize(
    ("device", "precision", "count", "flops", "hours"),
    [
        ("p100", "fp32", 8, 9.5e17, 12),
        ("p100", "fp32", 8, 9.7e18, 84),
        ("h200", "bf16", 1, 9.5e17, 1e5 * 0.028 / 3600),
        ("h200", "bf16", 1, 9.7e18, 3e5 * 0.07163 / 3600),
    ],
)
def test_estimates_are_near_the_papers_times_and_those_of_measured_steps(
    device: str, precision: str, count: int, flops: float, hours: float
) -> None:
    found = estimate(flops, device, precision, DEVICES[device].peak(precision), count)
    assert found.hours == pytest.approx(hours, rel=0.3)


@pytest.mark.parametrize(("name", "cores", "clock"), [("v100", 5120, 1.53e9), ("t4", 2560, 1.59e9)])
def test_devices_without_bf16_are_estimated_in_fp16(name: str, cores: int, clock: float) -> None:
    """Against one fused multiply-add per core and clock in fp32, and eight in fp16, on the tensor cores."""
    assert precision_on(name, "auto") == precision_on(name, "fp16") == "fp16"
    for precision, products in (("fp32", 1), ("fp16", 8)):
        assert DEVICES[name].peak(precision) == pytest.approx(2 * products * cores * clock, rel=0.02)
    with pytest.raises(ConfigError, match=rf"describe.device={name} has no bf16: leave runtime.precision out"):
        precision_on(name, "bf16")


def test_devices_without_tensor_cores_are_estimated_in_fp32() -> None:
    assert precision_on("p100", "auto") == "fp32"


def test_fp32_has_half_the_peak_of_bf16_if_a_device_has_both() -> None:
    for name, device in DEVICES.items():
        if precision_on(name, "auto") == "bf16":
            assert device.half == pytest.approx(2 * device.fp32, rel=0.02)


def test_the_measured_peak_is_that_of_a_product_that_is_timed_otherwise() -> None:
    peak = measured_peak(Machine(torch.device("cpu"), torch.float32))
    left, right = torch.randn(2, 1024, 1024)
    seconds = min(timeit.repeat(lambda: left @ right, number=1, repeat=5))
    assert 0.2 < peak * seconds / (2 * 1024**3) < 5


def test_an_unknown_device_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"describe.device=h10 is not a device known here; did you mean h100\?"):
        find_device("h10")
    with pytest.raises(ConfigError, match=r"did you mean h100\?"):
        find_device("H10")
    assert find_device("H100") == find_device("h100")
