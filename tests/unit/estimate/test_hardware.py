"""Estimates for devices, against the paper's arithmetic."""

import pytest

from nmt.errors import ConfigError
from nmt.estimate.hardware import DEVICES, Estimate, estimate, find_device, precision_on


def on(name: str, flops: float, count: int = 1, precision: str = "auto", seconds: float = 3600.0) -> Estimate:
    device = DEVICES[name]
    return estimate(flops, seconds, device.peak(precision_on(name, precision)), device, count)


def test_the_minimum_time_is_that_of_large_matrix_products() -> None:
    base, big = on("h100", 9.5e17), on("h100", 9.7e18)
    assert (60 * base.floor_hours, big.floor_hours) == pytest.approx((20, 3.4), rel=0.02)


def test_energy_and_money_are_those_of_all_devices() -> None:
    cost = on("a100", 1e18, count=8, seconds=7200.0)
    assert (cost.hours, cost.kilowatt_hours, cost.dollars) == pytest.approx((2, 8 * 2 * 0.4, 8 * 2 * 1.8))


def test_an_operation_takes_as_long_as_its_bytes_or_its_products() -> None:
    h100 = DEVICES["h100"]
    assert h100.seconds(3.35e12, 0, "bf16") == pytest.approx(1 / 0.85)
    assert h100.seconds(0, 989e12, "bf16") == pytest.approx(1 / 0.62)
    assert h100.seconds(0, 989e12, "fp32") == pytest.approx(2 / 0.62, rel=0.01)
    assert h100.seconds(3.35e12, 989e12, "bf16") == h100.seconds(0, 989e12, "bf16")
    assert h100.seconds(1, 0, "bf16") == 4e-6


@pytest.mark.parametrize(("name", "cores", "clock"), [("v100", 5120, 1.53e9), ("t4", 2560, 1.59e9)])
def test_devices_without_bf16_are_estimated_in_fp16(name: str, cores: int, clock: float) -> None:
    """Against one fused multiply-add per core and clock in fp32, and eight in fp16, on the tensor cores."""
    assert precision_on(name, "auto") == precision_on(name, "fp16") == "fp16"
    for precision, products in (("fp32", 1), ("fp16", 8)):
        hours = on(name, 1e18, precision=precision).floor_hours
        assert hours == pytest.approx(1e18 / (0.8 * 2 * products * cores * clock) / 3600, rel=0.02)
    with pytest.raises(ConfigError, match=rf"describe.device={name} has no bf16: leave runtime.precision out"):
        precision_on(name, "bf16")


def test_devices_without_tensor_cores_are_estimated_in_fp32() -> None:
    assert precision_on("p100", "auto") == "fp32"
    assert on("p100", 1e18, precision="fp16") == on("p100", 1e18)


def test_fp32_has_half_the_peak_of_bf16_if_a_device_has_both() -> None:
    for name in DEVICES:
        if precision_on(name, "auto") == "bf16":
            fp32 = on(name, 1e18, precision="fp32").floor_hours
            assert fp32 == pytest.approx(2 * on(name, 1e18).floor_hours, rel=0.02)
            assert on(name, 1e18, precision="bf16") == on(name, 1e18, precision="fp16") == on(name, 1e18)


def test_an_unknown_device_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"describe.device=h10 is not a device known here; did you mean h100\?"):
        find_device("h10")
    with pytest.raises(ConfigError, match=r"did you mean h100\?"):
        find_device("H10")
    assert find_device("H100") == find_device("h100")
