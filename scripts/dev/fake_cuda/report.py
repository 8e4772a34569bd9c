"""Measure a step and its graphs on a fake device, and show the counts as text or JSON."""

from typing import Any, NamedTuple

import torch

from fake_cuda.counting import Counter, Operation
from fake_cuda.device import fake_cuda
from fake_cuda.graphs import Graphs, count_graphs
from fake_cuda.plain import plain_operations
from fake_cuda.step import PHASES, count_step
from nmt.config.compose import compose
from nmt.estimate.hardware import find_device

BANDWIDTHS = {"h200": 4.8e12, "h100": 3.35e12, "a100": 2.04e12, "v100": 900e9}
"""Bytes per second from and to the memory of a device."""
LAUNCH_SECONDS = 4e-6


class Report(NamedTuple):
    """The counts of a step."""

    name: str
    device: str
    operations: dict[tuple[str, str], Operation]
    """By phase and name."""
    graphs: Graphs | None

    def phases(self) -> dict[str, Operation]:
        """Return the sums over the operations of each phase."""
        sums = {phase: Operation() for phase in PHASES}
        for (phase, _), operation in self.operations.items():
            sums[phase].add(operation)
        return sums

    def total(self) -> Operation:
        """Return the sum over all operations."""
        total = Operation()
        for operation in self.operations.values():
            total.add(operation)
        return total


def measure(overrides: list[str], device_name: str, *, with_graphs: bool) -> Report:
    """Return the counts of a step with these settings, and times for this device."""
    config = compose(overrides)
    device = find_device(device_name)

    def seconds(moved: int, flops: int, dtype: torch.dtype) -> float:
        peak = device.peak("fp32" if dtype == torch.float32 else "bf16")
        return max(LAUNCH_SECONDS, moved / (0.85 * BANDWIDTHS[device_name]), flops / (0.62 * peak))

    with fake_cuda(device.memory, device.capability) as mode:
        counter = Counter(seconds, None if device.fused else plain_operations())
        count_step(config, mode, counter)
        graphs = count_graphs(config, mode) if with_graphs else None
    return Report(config.name, device_name, counter.operations, graphs)


def as_json(report: Report) -> dict[str, Any]:
    """Return the counts as JSON objects, whose keys scripts rely on."""
    graphs = report.graphs
    return {
        **_counts(report.total()),
        "graphs": graphs and graphs.graphs,
        "graph_breaks": graphs and graphs.breaks,
        "device": report.device,
        "phases": {name: _counts(phase) for name, phase in report.phases().items()},
    }


def _counts(operation: Operation) -> dict[str, float]:
    return {
        "launches": operation.launches,
        "bytes": operation.bytes,
        "bytes_once": operation.bytes_once,
        "flops": operation.flops,
        "host_reads": operation.host_reads,
        "milliseconds": round(1000 * operation.seconds, 3),
    }


def as_text(report: Report, top: int) -> str:
    """Return the counts as a table for a terminal, followed by the slowest operations."""
    head = f"{'launches':>9}{'GB':>8}{'GB once':>9}{'TFLOP':>8}{'host reads':>11}{'ms':>8}"
    lines = [f"{report.name}, times of one {report.device}", f"{'':<12}{head}"]
    lines += [_row(f"{name:<12}", each) for name, each in {**report.phases(), "all": report.total()}.items()]
    if report.graphs:
        lines.append(f"compiled: {report.graphs.graphs} graphs, {report.graphs.breaks} graph breaks")
    slowest = sorted(report.operations.items(), key=lambda item: -item[1].seconds)[:top]
    if slowest:
        lines += ["", f"{'':<44}{head}"]
    return "\n".join([*lines, *(_row(f"{phase:<11}{name:<33}", each) for (phase, name), each in slowest)])


def _row(title: str, counts: Operation) -> str:
    return (
        f"{title}{counts.launches:>9,}{counts.bytes / 1e9:>8.2f}{counts.bytes_once / 1e9:>9.2f}"
        f"{counts.flops / 1e12:>8.2f}{counts.host_reads:>11}{1000 * counts.seconds:>8.2f}"
    )
