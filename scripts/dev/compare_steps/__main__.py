"""Compare the time of a training step of two versions of the code, or of two settings, which take turns.

    git worktree add ../before HEAD~1
    .venv/bin/python scripts/dev/compare_steps --sources ../before/src src experiment=multi30k
    .venv/bin/python scripts/dev/compare_steps --second model.dropout=0.2 experiment=multi30k

Each of the two is a process, and both train on the same batches of the run's prepared corpus. In each round the first
one makes a few steps, then the second one. On a machine that other programs share, the median of the rounds' ratios is
much more precise than two separate measurements. CPU seconds are those of all threads.
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

WARMUP_STEPS = 24


class Turn(NamedTuple):
    """What one turn took, the mean loss of its steps, and their source and target tokens."""

    wall: float
    cpu: float
    loss: float
    tokens: int


class Variant:
    """A process that trains when it is told to."""

    def __init__(self, source: Path, overrides: Sequence[str], options: argparse.Namespace) -> None:
        command = [sys.executable, __file__, "--worker", f"--turn={options.turn}", *options.overrides, *overrides]
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
    if options.worker:
        work(options)
        return
    first, second = (Variant(*each, options) for each in zip(options.sources, ([], options.second), strict=True))
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
    losses = [sum(turn.loss for turn in turns) / len(turns) for turns in zip(*rounds, strict=True)]
    print(f"tokens of the second divided by those of the first: {tokens[1] / tokens[0]:.3f}")
    print(f"mean loss {losses[0]:.4f} and {losses[1]:.4f}: unless they are close, the times say nothing")


def work(options: argparse.Namespace) -> None:
    """Train for a turn whenever a line arrives."""
    from nmt.compute.machine import prepare_machine  # noqa: PLC0415 - from the sources of this variant
    from nmt.config.compose import compose  # noqa: PLC0415
    from nmt.data.store import PairStore  # noqa: PLC0415
    from nmt.text.tokenizer import Tokenizer  # noqa: PLC0415
    from nmt.training.build import build_trainer, training_batches  # noqa: PLC0415

    config = compose(options.overrides)
    tokenizer = Tokenizer.load(config.data_folder)
    sizes = (tokenizer.source_size, tokenizer.target_size)
    trainer = build_trainer(config, prepare_machine(config.runtime), sizes)
    stream = training_batches(trainer, PairStore.open(config.data_folder, "train"))
    for batch in islice(stream, WARMUP_STEPS):
        trainer.update(batch)
    for _ in sys.stdin:
        batches = list(islice(stream, options.turn))
        wall, cpu = time.perf_counter(), time.process_time()
        for batch in batches:
            trainer.update(batch)
        wall, cpu, statistics = time.perf_counter() - wall, time.process_time() - cpu, trainer.take_statistics()
        if statistics.skipped:
            raise SystemExit(f"{statistics.skipped} steps had no finite gradient, so their time says nothing")
        print(json.dumps(Turn(wall, cpu, statistics.loss, sum(batch.tokens for batch in batches))), flush=True)


def _parser() -> argparse.ArgumentParser:
    here = Path(__file__).parents[3] / "src"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, nargs=2, default=(here, here), help="two folders with nmt's code")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--turn", type=int, default=6, help="steps per turn")
    parser.add_argument("--second", action="append", default=[], metavar="KEY=VALUE", help="for the second one")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("overrides", nargs="*", default=["experiment=multi30k"], help="settings of the run")
    return parser


if __name__ == "__main__":
    main()
