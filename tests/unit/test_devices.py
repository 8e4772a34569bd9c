"""Estimates for devices, against the paper's arithmetic."""

import pytest

from nmt.devices import DEVICES, estimate, find_device
from nmt.errors import ConfigError


def test_base_and_big_on_one_h100() -> None:
    base = estimate(9.5e17, DEVICES["h100"], 1)
    assert (60 * base.floor_hours, 60 * base.hours) == pytest.approx((20, 50), rel=0.02)
    big = estimate(9.7e18, DEVICES["h100"], 1)
    assert (big.floor_hours, big.hours) == pytest.approx((3.4, 8.5), rel=0.02)
    assert (big.kilowatt_hours, big.dollars) == pytest.approx((0.7 * big.hours, 3 * big.hours))


def test_more_devices_take_less_time_and_as_much_money() -> None:
    one, eight = (estimate(1e18, DEVICES["a100"], count) for count in (1, 8))
    assert eight.hours == pytest.approx(one.hours / 8)
    assert (eight.dollars, eight.kilowatt_hours) == pytest.approx((one.dollars, one.kilowatt_hours))


def test_the_papers_own_hours_are_near() -> None:
    assert estimate(9.5e17, DEVICES["p100"], 8).hours == pytest.approx(12, rel=0.2)


def test_an_unknown_device_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"device=h10 is not a device known here; did you mean h100\?"):
        find_device("h10")
