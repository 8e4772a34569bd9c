"""What a run would take on devices that are not here: hours, energy and money, from stated assumptions."""

from typing import NamedTuple

from nmt.errors import ConfigError, nearest

SUSTAINED = 0.8
"""Share of a device's peak that one large matrix product reaches."""
PRODUCT_SHARE = 0.62
"""Share of the peak that the matrix products of a training step reach, which are smaller."""
BANDWIDTH_SHARE = 0.85
"""Share of the memory bandwidth that an operation reaches."""
LAUNCH_SECONDS = 2.5e-6
"""The least time that an operation takes on a GPU."""
EFFICIENCY = 0.4
"""Share of that which a whole training step reaches; assumed to hold on several devices too."""


class Device(NamedTuple):
    """A device's data sheet, and what renting one costs."""

    bf16: float | None
    """FLOP/s of dense matrix products in bf16; None if the device has none."""
    fp32: float
    """FLOP/s of dense matrix products in fp32: in TF32 if the device has it, because training then uses it."""
    memory: float
    """Bytes."""
    bandwidth: float
    """Bytes per second from and to its memory."""
    watts: float
    """Board power under load; the rest of its machine is not counted."""
    price: float
    """US dollars for an hour: an assumption about what clouds ask, good to a factor of two."""

    def peak(self, precision: str) -> float:
        """Return the FLOP/s of dense matrix products in `bf16` or `fp32`."""
        return self.bf16 if precision == "bf16" and self.bf16 else self.fp32

    def seconds(self, moved: float, flops: float, precision: str) -> float:
        """Return the time of an operation that reads and writes `moved` bytes, by the roofline model."""
        products = flops / (PRODUCT_SHARE * self.peak(precision))
        return max(LAUNCH_SECONDS, moved / (BANDWIDTH_SHARE * self.bandwidth), products)


DEVICES = {
    "b200": Device(2250e12, 1125e12, 180e9, 8e12, 1000, 5.5),
    "h200": Device(989e12, 494e12, 141e9, 4.8e12, 700, 3.5),
    "h100": Device(989e12, 494e12, 80e9, 3.35e12, 700, 3.0),
    "a100": Device(312e12, 156e12, 80e9, 2.04e12, 400, 1.8),
    "l40s": Device(362e12, 183e12, 48e9, 864e9, 350, 1.2),
    "l4": Device(121e12, 60e12, 24e9, 300e9, 72, 0.8),
    "rtx4090": Device(165e12, 82.6e12, 24e9, 1008e9, 450, 0.5),
    "v100": Device(None, 15.7e12, 16e9, 900e9, 300, 1.0),
    "t4": Device(None, 8.1e12, 16e9, 320e9, 70, 0.4),
    "p100": Device(None, 9.5e12, 16e9, 732e9, 300, 0.5),
}
"""By the names that `describe.device` takes. The tensor cores of the V100 and the T4 take fp16, which nmt does not use,
so both compute in fp32 like the P100, which the paper used."""


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
        raise ConfigError(f"describe.device={name} is not a device known here; {nearest(name, DEVICES)}")
    return DEVICES[name]


def precision_on(name: str, wanted: str) -> str:
    """Return the precision of a run on a device: bf16 if the device has it, unless fp32 is asked for."""
    has_bf16 = find_device(name).bf16 is not None
    if wanted == "bf16" and not has_bf16:
        raise ConfigError(
            f"runtime.precision=bf16, but describe.device={name} has no bf16: leave runtime.precision out"
        )
    return "bf16" if has_bf16 and wanted != "fp32" else "fp32"


def estimate(flops: float, peak: float, device: Device, count: int) -> Estimate:
    """Return what that many operations take on that many devices, each with this peak of FLOP/s."""
    floor = flops / (count * SUSTAINED * peak) / 3600
    hours = floor / EFFICIENCY
    return Estimate(floor, hours, hours * count * device.watts / 1000, hours * count * device.price)
