"""How fast devices multiply, and how long a run takes if it reaches one share of that."""

import math
import time
from typing import NamedTuple

import torch

from nmt.compute.machine import BF16_CAPABILITY, Machine, precision_of_gpu
from nmt.errors import ConfigError, nearest

SHARE = 0.4
"""The share of the peak of matrix products that training is assumed to reach. In bf16, base reached 33% of that of an
H200 and big 43%; in fp32, a small model reached 57% of that of a Zen 3."""
SECONDS_OF_PRODUCTS = 0.3


class Device(NamedTuple):
    """A device's data sheet."""

    capability: tuple[int, int]
    """Its compute capability, which decides what it can multiply."""
    half: float
    """FLOP/s of dense matrix products in bf16, or in fp16 if the device has no bf16."""
    fp32: float
    """FLOP/s of dense matrix products in fp32: in TF32 if the device has it, because training then uses it."""
    memory: float
    """Bytes."""

    @property
    def fused(self) -> bool:
        """Whether flash attention and the fused operations of `nmt.model.kernels` run on it."""
        return self.capability >= BF16_CAPABILITY


DEVICES = {
    "b200": Device((10, 0), 2250e12, 1125e12, 180e9),
    "h200": Device((9, 0), 989e12, 494e12, 141e9),
    "h100": Device((9, 0), 989e12, 494e12, 80e9),
    "a100": Device((8, 0), 312e12, 156e12, 80e9),
    "l40s": Device((8, 9), 362e12, 183e12, 48e9),
    "l4": Device((8, 9), 121e12, 60e12, 24e9),
    "rtx4090": Device((8, 9), 165e12, 82.6e12, 24e9),
    "v100": Device((7, 0), 125e12, 15.7e12, 16e9),
    "t4": Device((7, 5), 65e12, 8.1e12, 16e9),
    "p100": Device((6, 0), 9.5e12, 9.5e12, 16e9),
}
"""By the names that `describe.device` takes. The P100, which the paper used, has no tensor cores: its products of fp16
that are added up in fp32 are not faster."""


def hours(flops: float, peak: float, devices: int) -> float:
    """Return how long some floating-point operations take on devices with this peak of FLOP/s each."""
    return flops / (devices * SHARE * peak) / 3600


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


def measured_peak(machine: Machine) -> float:
    """Return the FLOP/s of a matrix product on the device of this process: the fastest of several."""
    size = 1024 if machine.device.type == "cpu" else 8192
    left, right = (torch.randn(size, size, device=machine.device).to(machine.precision) for _ in range(2))
    fastest, end = math.inf, time.perf_counter() + SECONDS_OF_PRODUCTS
    while math.isinf(fastest) or time.perf_counter() < end:
        began = time.perf_counter()
        float((left @ right)[0, 0])  # waits for the device
        fastest = min(fastest, time.perf_counter() - began)
    return 2 * size**3 / fastest


def duration(seconds: float) -> str:
    """Return a time with a suitable unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
