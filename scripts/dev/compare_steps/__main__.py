"""Compare the time of a training step of two versions of the code, checkpoints or settings, which take turns.

    git worktree add ../before HEAD~1
    .venv/bin/python scripts/dev/compare_steps --sources ../before/src src experiment=multi30k
    .venv/bin/python scripts/dev/compare_steps --steps 100 2500 experiment=multi30k
    .venv/bin/python scripts/dev/compare_steps --warmup 100 1400 experiment=multi30k
    .venv/bin/python scripts/dev/compare_steps --second model.dropout=0.2 experiment=multi30k

Each of the two is a process, and both train on the same batches of the run's prepared corpus (unless --second changes
the batches: then compare the tokens per second). In each round the first one makes a few steps, then the second one. On
a machine that other programs share, the median of the rounds' ratios is much more precise than two separate
measurements. CPU seconds are those of all threads.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import IO, NamedTuple, cast

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
from shared.command_line import at_least, run_tool, source_folder, tool_parser


class Turn(NamedTuple):
    """What one turn took, the mean loss of its steps, and their source and target tokens."""

    wall: float
    cpu: float
    loss: float
    tokens: int


class Variant:
    """A process that trains when it is told to."""

    def __init__(
        self, source: Path, step: int, warmup: int, overrides: Sequence[str], options: argparse.Namespace
    ) -> None:
        counts = [f"--turn={options.turn}", "--worker", str(step), str(warmup)]
        command = [sys.executable, __file__, *counts, *options.overrides, *overrides]
        environment = {**os.environ, "PYTHONPATH": str(source.absolute())}
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.turn()  # waits until it is ready

    def turn(self) -> Turn:
        """Let it train for a turn."""
        requests, answers = cast(IO[str], self.process.stdin), cast(IO[str], self.process.stdout)
        requests.write("\n")
        requests.flush()
        answer = answers.readline()
        return Turn(*json.loads(answer)) if answer else sys.exit("one of the two has failed: see above")


def main() -> None:
    """Compare two variants, or be the process of one."""
    options = _parser().parse_args()
    if options.worker is not None:
        work(options)
        return
    first, second = (
        Variant(*each, options)
        for each in zip(options.sources, options.steps, options.warmup, ([], options.second), strict=True)
    )
    try:
        rounds = [(first.turn(), second.turn()) for _ in range(options.rounds)]
    finally:
        for each in (first, second):
            each.process.terminate()
    for name in ("wall", "cpu"):
        times = [(getattr(one, name), getattr(other, name)) for one, other in rounds]
        ratios = [other / one for one, other in times]
        low, _, high = quantiles(ratios, n=4)
        step = [1000 * median(each) / options.turn for each in zip(*times, strict=True)]
        print(
            f"{name} seconds, second divided by first: median {median(ratios):.3f}, half of the rounds between "
            f"{low:.3f} and {high:.3f}; milliseconds per step {step[0]:.1f} and {step[1]:.1f}"
        )
    tokens = [sum(turn.tokens for turn in turns) for turns in zip(*rounds, strict=True)]
    print(f"tokens of the second divided by those of the first: {tokens[1] / tokens[0]:.3f}")
    losses = [sum(turn.loss for turn in turns) / len(turns) for turns in zip(*rounds, strict=True)]
    print(f"mean loss {losses[0]:.4f} and {losses[1]:.4f}: unless they are close, the times say nothing")


def work(options: argparse.Namespace) -> None:
    """Train for a turn whenever a line arrives."""
    from nmt.compute.machine import prepare_machine  # noqa: PLC0415 - from the sources of this variant
    from nmt.config.compose import compose  # noqa: PLC0415
    from nmt.data.batches import Batching  # noqa: PLC0415
    from nmt.data.loader import DataPosition, global_batches  # noqa: PLC0415
    from nmt.runs.checkpoint import load  # noqa: PLC0415
    from nmt.training.build import build_trainer  # noqa: PLC0415
    from nmt.training.opening import open_data  # noqa: PLC0415
    from nmt.training.state import TrainingState  # noqa: PLC0415

    step, warmup = options.worker
    config = compose(options.overrides)
    data, machine = open_data(config), prepare_machine(config.runtime)
    folder = config.run_folder / "checkpoints" / f"step-{step:08}"
    checkpoint = load(folder, trainer=True) if step else None
    trainer = build_trainer(config, machine, (data.tokenizer.source_size, data.tokenizer.target_size))
    if checkpoint is not None:
        TrainingState(trainer).restore(checkpoint)
    stream = global_batches(
        data.train,
        Batching.of(trainer.config, config.seed),
        device_tokens=trainer.config.device_tokens,
        start=DataPosition(),
        rank=0,
        devices=1,
        threads=trainer.gradient.concurrency,
        shapes=trainer.shapes(trainer.config.device_tokens),
    )
    for batch in islice(stream, warmup):
        trainer.update(batch)
    for _ in sys.stdin:
        batches = list(islice(stream, options.turn))
        wall, cpu = time.perf_counter(), time.process_time()
        for batch in batches:
            trainer.update(batch)
        wall, cpu, statistics = time.perf_counter() - wall, time.process_time() - cpu, trainer.take_statistics()
        if statistics.skipped:
            raise SystemExit(f"{statistics.skipped} steps had no finite gradient, so that their time says nothing")
        print(json.dumps(Turn(wall, cpu, statistics.loss, sum(batch.tokens for batch in batches))), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser(__file__, __doc__)
    here = Path(__file__).parents[3] / "src"
    parser.add_argument(
        "--sources", type=source_folder, nargs=2, default=(here, here), help="the two folders with nmt's code"
    )
    parser.add_argument(
        "--steps", type=at_least(0), nargs=2, default=(0, 0), help="the steps of two checkpoints; 0: a new model"
    )
    parser.add_argument("--rounds", type=at_least(2), default=12)
    parser.add_argument("--turn", type=at_least(1), default=6, help="steps per turn")
    parser.add_argument(
        "--warmup", type=at_least(0), nargs=2, default=(24, 24), help="steps of each of the two before its first turn"
    )
    parser.add_argument("--second", action="append", default=[], metavar="KEY=VALUE", help="for the second one")
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("overrides", nargs="*", default=["experiment=multi30k"], help="settings of the run")
    return parser


if __name__ == "__main__":
    run_tool(main, __file__)
