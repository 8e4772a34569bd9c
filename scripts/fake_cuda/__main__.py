"""Count what a training step would do on a GPU, on a machine without one."""

import argparse
import json
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # the folder of scripts, instead of this one

from fake_cuda.guard import register_device
from nmt.errors import UserError

try:
    register_device()
except UserError as error:
    sys.exit(f"fake_cuda: {error}")

from fake_cuda.counting import Counter, Operation
from fake_cuda.device import fake_cuda
from fake_cuda.step import PHASES, count_step

from nmt.config.compose import compose
from nmt.estimate.hardware import DEVICES


def main() -> int:
    """Print the counts; return the exit code."""
    options = _arguments()
    try:
        config = compose(options.overrides)
        with fake_cuda() as mode:
            counter = count_step(config, mode, _clock(options.device))
    except UserError as error:
        print(f"fake_cuda: {error}", file=sys.stderr)
        return 2
    print(_table(counter, options.top))
    return 0


def _clock(device):
    def seconds(moved, flops, dtype):
        return max(2.5e-6, moved / (0.85 * 3.35e12), flops / (0.62 * 989e12))

    return seconds


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--device", choices=list(DEVICES), default="h100")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--top", type=int, default=0)
    return parser.parse_args()


def _table(counter: Counter, top: int) -> str:
    rows = {phase: Operation() for phase in (*PHASES, "all")}
    for (phase, _), operation in counter.operations.items():
        rows[phase].add(operation)
        rows["all"].add(operation)
    lines = [f"{'':<12}{'launches':>9}{'GB':>8}{'GB once':>9}{'TFLOP':>8}{'host reads':>11}{'ms':>8}"]
    lines += [
        f"{name:<12}{row.launches:>9,}{row.bytes / 1e9:>8.1f}{row.bytes_once / 1e9:>9.1f}{row.flops / 1e12:>8.2f}"
        f"{row.host_reads:>11}{1e3 * row.seconds:>8.1f}"
        for name, row in rows.items()
    ]
    costly = sorted(counter.operations.items(), key=lambda item: -item[1].seconds)[:top]
    lines += [
        f"  {phase:<10}{name:<34}{each.launches:>6}{each.bytes / 1e9:>8.2f}{each.bytes_once / 1e9:>8.2f}{1e3 * each.seconds:>8.2f}"
        for (phase, name), each in costly
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
