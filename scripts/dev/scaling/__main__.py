"""Estimate the speed of training on one GPU, on a machine with eight, and on eight such machines.

    .venv/bin/python scripts/dev/scaling experiment=wmt14_en_de_big training.reduce_precision=bf16

The time that the GPUs compute is that of `nmt describe`. Here the time of the processor and the reduction of gradients
are added. docs/scaling.md explains the figures, which come from data sheets but for those of the processor.

    .venv/bin/python scripts/dev/scaling --shapes

counts instead the launches of a step on 1, 2, 4 and 8 GPUs, and the sizes of micro-batches for CUDA graphs.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.commands.describe import describe
from nmt.config.compose import compose
from nmt.config.schema import Config

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package and `shared`
from scaling.shapes import shapes_table
from shared.command_line import run_tool, tool_parser

DEVICES = (1, 8, 64)
"""The numbers of GPUs."""
GPUS_PER_MACHINE = 8
NVLINK, INFINIBAND = 450e9, 50e9
"""Bytes per second that an H100 sends to its neighbours, and through its own port (400 Gbit/s) to other machines."""
REACHED = 0.8
"""The share of these that a reduction of tens of megabytes reaches."""
STEP_SECONDS, REPLAY_SECONDS = 4.0e-3, 0.5e-3
"""The processor's time for a step of one micro-batch whose passes are CUDA graphs, and for each further micro-batch:
measured on the machine of an H200."""


class Speed(NamedTuple):
    """A step on a number of GPUs, in seconds."""

    computing: float
    launching: float
    reducing: float
    """The reduction of all gradients, after the backward pass."""

    @property
    def step(self) -> float:
        """The whole step: GPUs compute and reduce while the processor launches."""
        return max(self.computing + self.reducing, self.launching)


def reduction_seconds(size: float, gpus: int) -> float:
    """Return the time in which GPUs add up this many bytes: in each machine, then between machines.

    In a ring of n, each GPU sends 2 (n - 1) / n of the bytes. Between machines, each GPU sends its eighth of them.
    """
    inside, machines = min(gpus, GPUS_PER_MACHINE), max(1, gpus // GPUS_PER_MACHINE)
    seconds = 2 * (inside - 1) / inside * size / NVLINK + 2 * (machines - 1) / machines * size / inside / INFINIBAND
    return seconds / REACHED


def speed(config: Config, gpus: int) -> Speed:
    """Return the estimate for a number of GPUs."""
    figures = describe(config, gpus)
    assert figures.estimate is not None
    computing = 3600 * figures.estimate.hours / config.training.steps
    width = 2 if config.training.reduce_precision == "bf16" else 4
    reducing = reduction_seconds(width * figures.parameters.total, gpus)
    launching = STEP_SECONDS + (figures.accumulation - 1) * REPLAY_SECONDS
    return Speed(computing, launching, reducing)


def table(overrides: Sequence[str]) -> str:
    """Return the estimates of an experiment as a table in Markdown."""
    config = compose([*overrides, "describe.device=h100"])
    lines = [
        "| H100s | computing, ms | launching, ms | reduction, ms | tokens/s | minutes |",
        "|---|---|---|---|---|---|",
    ]
    for gpus in DEVICES:
        each = speed(config, gpus)
        times = [f"{1000 * value:.2f}" for value in each]
        tokens = 2 * config.training.batch_tokens / each.step
        minutes = config.training.steps * each.step / 60
        lines.append(f"| {gpus} | {' | '.join(times)} | {tokens:,.0f} | {minutes:.1f} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table; return the exit code."""
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings, such as model=big")
    parser.add_argument("--shapes", action="store_true", help="count launches, and sizes for CUDA graphs, instead")
    options = parser.parse_intermixed_args()
    if options.shapes:
        print(shapes_table(compose([*options.overrides, "describe.device=h100"])))
    else:
        print(table(options.overrides))
    return 0


if __name__ == "__main__":
    run_tool(main, __file__)
