"""What a run would take on devices that are not here: hours, energy and money, from stated assumptions."""

from itertools import pairwise
from typing import NamedTuple

from nmt.compute.machine import BF16_CAPABILITY, precision_of_gpu
from nmt.errors import ConfigError, nearest

SUSTAINED = 0.8
"""Share of a device's peak that one large matrix product reaches."""
PRODUCT_SHARE = 0.62
"""Share of the peak that the matrix products of a training step reach, which are smaller."""
BANDWIDTH_SHARE = 0.85
"""Share of the memory bandwidth that an operation reaches."""
LAUNCH_SECONDS = 4e-6
"""The least time of an operation: what the host takes to start it, and the GPU to begin and end it."""


class Device(NamedTuple):
    """A device's data sheet, and what renting one costs."""

    capability: tuple[int, int]
    """Its compute capability, which decides what it can multiply."""
    half: float
    """FLOP/s of dense matrix products in bf16, or in fp16 if the device has no bf16."""
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
        """Return the FLOP/s of dense matrix products in `bf16`, `fp16` or `fp32`."""
        return self.fp32 if precision == "fp32" else self.half

    @property
    def fused(self) -> bool:
        """Whether flash attention and the fused operations of `nmt.model.kernels` run on it."""
        return self.capability >= BF16_CAPABILITY

    def seconds(self, moved: float, flops: float, precision: str) -> float:
        """Return the time of an operation that reads and writes `moved` bytes, by the roofline model."""
        products = flops / (PRODUCT_SHARE * self.peak(precision))
        return max(LAUNCH_SECONDS, moved / (BANDWIDTH_SHARE * self.bandwidth), products)


DEVICES = {
    "b200": Device((10, 0), 2250e12, 1125e12, 180e9, 8e12, 1000, 5.5),
    "h200": Device((9, 0), 989e12, 494e12, 141e9, 4.8e12, 700, 3.5),
    "h100": Device((9, 0), 989e12, 494e12, 80e9, 3.35e12, 700, 3.0),
    "a100": Device((8, 0), 312e12, 156e12, 80e9, 2.04e12, 400, 1.8),
    "l40s": Device((8, 9), 362e12, 183e12, 48e9, 864e9, 350, 1.2),
    "l4": Device((8, 9), 121e12, 60e12, 24e9, 300e9, 72, 0.8),
    "rtx4090": Device((8, 9), 165e12, 82.6e12, 24e9, 1008e9, 450, 0.5),
    "v100": Device((7, 0), 125e12, 15.7e12, 16e9, 900e9, 300, 1.0),
    "v100-32gb": Device((7, 0), 125e12, 15.7e12, 32e9, 900e9, 300, 1.2),
    "t4": Device((7, 5), 65e12, 8.1e12, 16e9, 320e9, 70, 0.4),
    "p100": Device((6, 0), 9.5e12, 9.5e12, 16e9, 732e9, 300, 0.5),
}
"""By the names that `describe.device` takes. The P100, which the paper used, has no tensor cores: its products of fp16
that are added up in fp32 are not faster."""


class Estimate(NamedTuple):
    """What a run takes, as far as the operations of its steps tell."""

    floor_hours: float
    """If every floating-point operation ran as fast as in a large matrix product."""
    hours: float
    kilowatt_hours: float
    dollars: float


def known_device(full_name: str, memory: float) -> str:
    """Return the name here of a GPU that calls itself `NVIDIA H100 80GB HBM3`, for example; empty if there is none."""
    words = full_name.lower().replace("-", " ").split()
    spellings = {*words, *map("".join, pairwise(words))}
    fitting = [name for name in DEVICES if name.partition("-")[0] in spellings and "laptop" not in words]
    return min(fitting, key=lambda name: abs(DEVICES[name].memory - memory), default="")


def find_device(name: str) -> Device:
    """Return the device of a name, in upper or lower case."""
    if name.lower() not in DEVICES:
        raise ConfigError(f"describe.device={name} is not a device known here; {nearest(name, DEVICES)}")
    return DEVICES[name.lower()]


def precision_on(name: str, wanted: str) -> str:
    """Return the precision of a run on a device: the fastest, unless another one is asked for."""
    fastest = precision_of_gpu(find_device(name).capability)
    if wanted == "bf16" and fastest != "bf16":
        raise ConfigError(
            f"runtime.precision=bf16, but describe.device={name} has no bf16: leave runtime.precision out"
        )
    return fastest if wanted == "auto" else wanted


def estimate(flops: float, seconds: float, peak: float, device: Device, count: int) -> Estimate:
    """Return what a run takes on `count` devices with this peak of FLOP/s.

    Args:
        flops: The floating-point operations of all devices together.
        seconds: The time that the operations of each device take.
        peak: The FLOP/s of a device.
        device: Its data sheet.
        count: The number of devices.
    """
    floor, hours = flops / (count * SUSTAINED * peak) / 3600, seconds / 3600
    return Estimate(floor, hours, hours * count * device.watts / 1000, hours * count * device.price)
