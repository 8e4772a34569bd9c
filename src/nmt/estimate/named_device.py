"""The time, energy and money of a run on the device that `describe.device` names."""

from dataclasses import dataclass
from typing import Any

from nmt.config.schema import Config
from nmt.estimate.cost import passes_per_batch
from nmt.estimate.hardware import (
    BANDWIDTH_SHARE,
    LAUNCH_SECONDS,
    PRODUCT_SHARE,
    SUSTAINED,
    Estimate,
    estimate,
    find_device,
    precision_on,
)
from nmt.estimate.measured import MeasuredStep, measured_file, nearest_step
from nmt.estimate.operations import Batch
from nmt.estimate.parameters import ParameterCounts
from nmt.estimate.step_time import step_seconds


@dataclass(frozen=True, slots=True)
class Share:
    """What each device does in a step."""

    devices: int
    micro_batches: int
    tokens: int
    """Source tokens of a micro-batch, and as many target tokens."""
    length: int
    """Typical number of tokens of a sentence."""


def run_estimate(
    config: Config, size: ParameterCounts, flops: int, share: Share, vocabularies: tuple[int, int]
) -> Estimate | None:
    """Return what a run takes on the device that `describe.device` names; None if it names none.

    `vocabularies` are the sizes of those of source and target.
    """
    name = config.describe.device
    if not name:
        return None
    device, precision = find_device(name), precision_on(name, config.runtime.precision)
    tokens = passes_per_batch(config.training) * share.tokens
    batch = Batch(tokens, tokens, share.length, precision, device.fused)
    parts = step_seconds(config.model, config.training, size, vocabularies, batch, device, share.micro_batches)
    measured = _measured(config, size)
    step = sum(seconds * (measured.ratios[part] if measured else 1) for part, seconds in parts.items())
    return estimate(flops, config.training.steps * step, device.peak(precision), device, share.devices)


def _measured(config: Config, size: ParameterCounts) -> MeasuredStep | None:
    """Return the step that was measured on this kind of device, if there is one."""
    name = config.describe.device
    path = measured_file(config.runs_folder, name)
    precision = precision_on(name, config.runtime.precision)
    return nearest_step(path, size.total, precision, compiled=config.runtime.compile)


def estimate_as_json(config: Config, size: ParameterCounts, figures: Estimate) -> dict[str, Any]:
    """Return an estimate as JSON values, with what it assumes."""
    name, measured = config.describe.device, _measured(config, size)
    device, precision = find_device(name), precision_on(name, config.runtime.precision)
    assumptions = {
        "sustained": SUSTAINED,
        "product_share": PRODUCT_SHARE,
        "bandwidth_share": BANDWIDTH_SHARE,
        "launch_seconds": LAUNCH_SECONDS,
        "precision": precision,
        "peak": device.peak(precision),
        "bandwidth": device.bandwidth,
        "memory": device.memory,
        "watts": device.watts,
        "price": device.price,
        "measured": measured and {"device": measured.device, "model": measured.model, "ratios": measured.ratios},
    }
    efficiency = figures.floor_hours / figures.hours
    return {"device": name, **figures._asdict(), "efficiency": efficiency, "assumptions": assumptions}


def estimate_lines(config: Config, size: ParameterCounts, cost: Estimate | None, devices: int) -> list[str]:
    """Return an estimate as lines for a terminal, with what it assumes."""
    if cost is None:
        return ["time: name a device for an estimate, such as describe.device=h100 describe.gpus=8"]
    name = config.describe.device
    device, precision = find_device(name), precision_on(name, config.runtime.precision)
    return [
        f"estimate for {devices} x {name}: {duration(cost.hours)}, "
        f"{cost.kilowatt_hours:.1f} kWh, {cost.dollars:,.2f} dollars; at least {duration(cost.floor_hours)}",
        f"  assuming that each operation takes the larger of its FLOPs at {PRODUCT_SHARE:.0%} of "
        f"{device.peak(precision) / 1e12:g} TFLOP/s in {precision} and its bytes at {BANDWIDTH_SHARE:.0%}",
        f"  of {device.bandwidth / 1e12:g} TB/s, and at least {1e6 * LAUNCH_SECONDS:g} microseconds; "
        f"the minimum time is that of all FLOPs at {SUSTAINED:.0%};",
        f"  {device.watts:.0f} W and {device.price:.2f} dollars per hour for each device; excluding communication "
        "between devices, validation, checkpoints and idle hosts",
        *_measured_lines(config, size),
    ]


def _measured_lines(config: Config, size: ParameterCounts) -> list[str]:
    if (measured := _measured(config, size)) is None:
        return []
    ratios = ", ".join(f"{part} {ratio:.2f}" for part, ratio in measured.ratios.items())
    path = measured_file(config.runs_folder, config.describe.device)
    return [f"  multiplied by the ratios that {measured.device} measured for {measured.model} ({path}): {ratios}"]


def duration(hours: float) -> str:
    """Return a time in words."""
    if 60 * hours < 1.5:
        return f"{3600 * hours:.0f} seconds"
    return f"{60 * hours:.0f} minutes" if hours < 1.5 else f"{hours:.1f} hours"
