"""Measure how often threads that wait for each other should spin before they sleep.

    .venv/bin/python scripts/dev/side_by_side
    .venv/bin/python scripts/dev/side_by_side --spins 300000 10000 4000 --rounds 6 runtime.precision=fp32

Each number of spins is a value of GOMP_SPINCOUNT, and the numbers take turns. In a turn the demo is trained, then twice
at the same time, and then its model translates sentences one by one. Each ratio is the median of those of all rounds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, median

import nmt

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
from shared.command_line import at_least, run_tool, tool_parser

NMT = (sys.executable, "-m", "nmt")
OF_OPENMP = 300_000
"""The spins of GNU OpenMP, unless a program asks for others."""
STEPS = 60
SETTINGS = (
    "experiment=demo",
    f"training.steps={STEPS}",
    "training.log_every=20",
    f"training.valid_every={STEPS}",
    f"training.save_every={STEPS}",
    "training.valid_sentences=1",
    "training.warmup_steps=10",
)
SENTENCES = 60
Rates = Mapping[str, float]


def main() -> int:
    """Print the table; return the exit code."""
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("--spins", type=at_least(0), nargs="+", default=[OF_OPENMP, nmt.SPINS], help="what to compare")
    parser.add_argument("--rounds", type=at_least(1), default=3, help="turns of each number")
    parser.add_argument("--translate", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("overrides", nargs="*", help="settings, such as runtime.precision=fp32")
    arguments = parser.parse_args()
    if arguments.translate:
        print(_translations_per_second(*arguments.translate))
        return 0
    rounds: dict[int, list[Rates]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="side-by-side-") as name:
        settings = (*SETTINGS, f"paths.data={name}/data", f"paths.outputs={name}/outputs", *arguments.overrides)
        subprocess.run([*NMT, "data", *settings], check=True, stdout=subprocess.DEVNULL)
        for number in range(arguments.rounds):
            for spins in arguments.spins if number % 2 else reversed(arguments.spins):
                rounds[spins].append(_turn(Path(name), settings, number, spins))
    for spins in arguments.spins:
        print(f"{spins:>7} spins: {_words(rounds[spins], rounds[arguments.spins[0]])}")
    return 0


def _turn(folder: Path, settings: Sequence[str], number: int, spins: int) -> Rates:
    """Measure one number of spins."""
    environment = {**os.environ, "GOMP_SPINCOUNT": str(spins)}
    alone, first, second = (folder / "outputs" / f"{kind}-{spins}-{number}" for kind in ("alone", "first", "second"))

    def train(*runs: Path) -> float:
        """Train runs at the same time, and return the tokens per second of one of them on average."""
        commands = [[*NMT, "train", *settings, f"name={run.name}"] for run in runs]
        processes = [
            subprocess.Popen(each, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for each in commands
        ]
        outputs = [process.communicate()[0] for process in processes]
        if failed := [text for text, process in zip(outputs, processes, strict=True) if process.returncode]:
            raise SystemExit(f"{failed[0]}side_by_side: this training has failed")
        return mean(_tokens_per_second(run) for run in runs)

    rates = {"tokens per second alone": train(alone), "each of two": train(first, second)}
    model, text = str(alone / "checkpoints" / "last"), str(folder / "data" / "demo" / "test.en")
    command = [sys.executable, __file__, "--translate", model, text]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return {**rates, "sentences per second, one by one": float(done.stdout)}


def _tokens_per_second(run: Path) -> float:
    """Return the mean rate of all log lines but the first, whose steps warm up."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    events: list[dict[str, float]] = [json.loads(line) for line in lines]
    return mean([event["tokens_per_second"] for event in events if "tokens_per_second" in event][1:])


def _translations_per_second(checkpoint: str, source: str) -> float:
    """Translate sentences one by one, some of them to warm up."""
    model = nmt.load(checkpoint)
    lines = Path(source).read_text(encoding="utf-8").splitlines()[:SENTENCES]
    for line in lines[:5]:
        model.translate([line])
    started = time.perf_counter()
    for line in lines:
        model.translate([line])
    return len(lines) / (time.perf_counter() - started)


def _words(rates: Sequence[Rates], before: Sequence[Rates]) -> str:
    """Return the median of each rate, and of its ratios to the first number of spins."""
    return "; ".join(
        f"{what} {median(each[what] for each in rates):,.0f} "
        f"({median(after[what] / first[what] for after, first in zip(rates, before, strict=True)):.2f})"
        for what in rates[0]
    )


if __name__ == "__main__":
    run_tool(main, __file__)
