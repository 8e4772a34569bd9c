"""Estimates for devices, against the paper's arithmetic."""

import pytest

from nmt.errors import ConfigError
from nmt.estimate.hardware import DEVICES, Estimate, estimate, find_device, precision_on


def on(name: str, flops: float, count: int = 1, precision: str = "auto") -> Estimate:
    device = DEVICES[name]
    return estimate(flops, device.peak(precision_on(name, precision)), device, count)


def test_base_and_big_on_one_h100() -> None:
    base = on("h100", 9.5e17)
    assert (60 * base.floor_hours, 60 * base.hours) == pytest.approx((20, 50), rel=0.02)
    big = on("h100", 9.7e18)
    assert (big.floor_hours, big.hours) == pytest.approx((3.4, 8.5), rel=0.02)
    assert (big.kilowatt_hours, big.dollars) == pytest.approx((0.7 * big.hours, 3 * big.hours))


def test_more_devices_take_less_time_and_as_much_money() -> None:
    one, eight = (on("a100", 1e18, count) for count in (1, 8))
    assert eight.hours == pytest.approx(one.hours / 8)
    assert (eight.dollars, eight.kilowatt_hours) == pytest.approx((one.dollars, one.kilowatt_hours))


def test_the_papers_own_hours_are_near() -> None:
    assert on("p100", 9.5e17, 8).hours == pytest.approx(12, rel=0.2)


@pytest.mark.parametrize(("name", "cores", "clock"), [("v100", 5120, 1.53e9), ("t4", 2560, 1.59e9)])
def test_devices_without_bf16_are_estimated_in_fp32(name: str, cores: int, clock: float) -> None:
    """Against one fused multiply-add per core and clock, which is what fp32 reaches without tensor cores."""
    assert precision_on(name, "auto") == precision_on(name, "fp32") == "fp32"
    assert on(name, 1e18).floor_hours == pytest.approx(1e18 / (0.8 * 2 * cores * clock) / 3600, rel=0.02)
    with pytest.raises(ConfigError, match=rf"describe.device={name} has no bf16: leave runtime.precision out"):
        precision_on(name, "bf16")


def test_fp32_takes_twice_as_long_as_bf16_where_a_device_has_both() -> None:
    for name, device in DEVICES.items():
        if device.bf16:
            assert on(name, 1e18, precision="fp32").hours == pytest.approx(2 * on(name, 1e18).hours, rel=0.02)
            assert on(name, 1e18, precision="bf16") == on(name, 1e18)


def test_an_unknown_device_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"describe.device=h10 is not a device known here; did you mean h100\?"):
        find_device("h10")
