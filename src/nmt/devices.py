"""What a run would take on devices that are not here: hours, energy and money, from stated assumptions."""

from typing import NamedTuple

from nmt.errors import ConfigError, nearest

SUSTAINED = 0.8
"""Share of a device's peak that one large matrix product reaches."""
EFFICIENCY = 0.4
"""Share of that which a whole training step reaches; assumed to hold on several devices too."""


class Device(NamedTuple):
    """A device's data sheet, and what renting one costs."""

    peak: float
    """FLOP/s of dense matrix products, in bf16 where the device has it."""
    memory: float
    """Bytes."""
    watts: float
    """Board power under load; the rest of its machine is not counted."""
    price: float
    """US dollars for an hour: an assumption about what clouds ask, good to a factor of two."""


DEVICES = {
    "b200": Device(2250e12, 180e9, 1000, 5.5),
    "h200": Device(989e12, 141e9, 700, 3.5),
    "h100": Device(989e12, 80e9, 700, 3.0),
    "a100": Device(312e12, 80e9, 400, 1.8),
    "l40s": Device(362e12, 48e9, 350, 1.2),
    "l4": Device(121e12, 24e9, 72, 0.8),
    "rtx4090": Device(165e12, 24e9, 450, 0.5),
    "v100": Device(125e12, 16e9, 300, 1.0),
    "p100": Device(9.5e12, 16e9, 300, 0.5),
}
"""By the names that `device=` takes. The V100 computes in fp16; the P100, which the paper used, in fp32."""


class Estimate(NamedTuple):
    """What a run takes, as far as its floating-point operations tell."""

    floor_hours: float
    """If every operation ran as fast as in a large matrix product."""
    hours: float
    kilowatt_hours: float
    dollars: float


def find_device(name: str) -> Device:
    """The device of a name."""
    if name not in DEVICES:
        raise ConfigError(f"device={name} is not a device known here; {nearest(name, DEVICES)}")
    return DEVICES[name]


def estimate(flops: float, device: Device, count: int) -> Estimate:
    """What so many operations take on so many devices."""
    floor = flops / (count * SUSTAINED * device.peak) / 3600
    hours = floor / EFFICIENCY
    return Estimate(floor, hours, hours * count * device.watts / 1000, hours * count * device.price)
