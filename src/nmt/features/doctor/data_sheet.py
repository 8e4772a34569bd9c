"""What estimates know about a device: its data sheet, or what a few large operations measure if there is none."""

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch

from nmt.compute.machine import BF16_CAPABILITY, PRECISIONS, Machine, device_name, memory_of
from nmt.estimate.hardware import DEVICES, Device, known_device
from nmt.measuring.steps import wait
from nmt.model.kernels.backend import is_old_gpu

SIDES = {"cuda": 8192, "cpu": 2048}
"""The side of the matrices that are multiplied, by type of device."""
COPIED_BYTES = {"cuda": 2**30, "cpu": 2**26}
REPETITIONS = 10


class Peak(NamedTuple):
    """What one large operation reaches."""

    name: str
    flops_per_second: float | None = None
    bytes_per_second: float | None = None


class Sheet(NamedTuple):
    """A device, and the name of its kind."""

    kind: str
    """A key of the devices that `describe.device` takes, or the name of the device as files are named."""
    device: Device | None
    """None if the device has no data sheet here."""


def sheet_of(device: torch.device) -> Sheet:
    """Return the data sheet of a device."""
    name = device_name(device)
    kind = known_device(name, memory_of(device)) if device.type == "cuda" else ""
    if kind:
        return Sheet(kind, DEVICES[kind])
    plain = "".join(char if char.isascii() and char.isalnum() else " " for char in name.lower())
    return Sheet("-".join(plain.split())[:40] or device.type, None)


def peaks(machine: Machine) -> list[Peak]:
    """Measure large matrix products in float32 and in the machine's precision, and a large copy."""
    device = machine.device
    side, copied = SIDES[device.type], COPIED_BYTES[device.type]
    found = []
    for name in dict.fromkeys(("fp32", machine.precision_name)):
        left, right = (torch.randn(side, side, device=device).to(PRECISIONS[name]) for _ in range(2))
        seconds = _best_seconds(device, partial(torch.mm, left, right))
        found.append(Peak(name, flops_per_second=2 * side**3 / seconds))
    source, target = (torch.zeros(copied, dtype=torch.uint8, device=device) for _ in range(2))
    seconds = _best_seconds(device, partial(target.copy_, source))
    return [*found, Peak("copy", bytes_per_second=2 * copied / seconds)]


def sheet_from(found: list[Peak], machine: Machine) -> Device:
    """Return measured peaks as the data sheet of a device that has none."""
    speeds = {each.name: each.flops_per_second or each.bytes_per_second or 0.0 for each in found}
    fused = machine.device.type == "cuda" and not is_old_gpu(machine.device)
    return Device(
        BF16_CAPABILITY if fused else (0, 0),
        speeds[machine.precision_name],
        speeds["fp32"],
        memory_of(machine.device),
        speeds["copy"],
        watts=0,
        price=0,
    )


def _best_seconds(device: torch.device, operation: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPETITIONS):
        wait(device)
        started = time.perf_counter()
        operation()
        wait(device)
        best = min(best, time.perf_counter() - started)
    return best
