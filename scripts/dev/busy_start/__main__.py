"""Compare own.minutes with training.max_training_minutes if a machine is busy only while a run is planned.

    .venv/bin/python scripts/dev/busy_start --minutes 3 --seeds 3 data.train=[train.en,train.de]

Two runs begin at the same time, one with each of the settings, each with half of the processors. Until both are
planned, as many other programs as there are processors use the machine. Both translate with a greedy search.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from nmt.cli import composed_settings
from nmt.compute.cores import computing_threads
from nmt.runs.layout import RunLayout, scores_file
from nmt.runs.metrics import read_metrics
from nmt.storage.files import read_json

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds `shared`
from shared.command_line import at_least, positive, run_tool, tool_parser

NMT = (sys.executable, "-m", "nmt")
LIMITS = ("own.minutes", "training.max_training_minutes")
SETTINGS = ("experiment=own", "training.valid_sentences=0", "evaluation.splits=[valid,test]")
GREEDY = ("decoding.beam=1", "decoding.extra_length=10")
"""A quick search: models that have hardly been trained do not end their sentences."""
COLUMNS = ("minutes of", "seed", "steps", "seconds", "perplexity, dev", "BLEU, dev", "BLEU, test")


class Run(NamedTuple):
    """A run with one of the settings."""

    limit: str
    minutes: float
    seed: int
    overrides: Sequence[str]

    @property
    def words(self) -> list[str]:
        """All settings of the run."""
        name = f"busy_start/{self.limit.replace('.', '-')}-{self.minutes:g}-{self.seed}"
        threads = f"runtime.threads={max(1, computing_threads() // len(LIMITS))}"
        own = (f"{self.limit}={self.minutes:g}", f"name={name}", f"seed={self.seed}", threads)
        return [*SETTINGS, *GREEDY, *own, *self.overrides]

    def cells(self) -> list[str]:
        """Return the row of the table."""
        layout = RunLayout(composed_settings(self.words).run_folder)
        events = read_metrics(layout.metrics)
        steps = max(each.step for each in events)
        seconds = sum(each.number("seconds") or 0.0 for each in events if each.event == "train")
        valid, test = (read_json(scores_file(layout.evaluation, split)) for split in ("valid", "test"))
        figures = [f"{valid['perplexity']:.2f}", *(f"{each['bleu']['score']:.1f}" for each in (valid, test))]
        return [self.limit, str(self.seed), f"{steps:,}", f"{seconds:.0f}", *figures]


def main() -> None:
    """Train all runs, and print the table."""
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("--minutes", type=positive, default=3.0, help="of training (3)")
    parser.add_argument("--seeds", type=at_least(1), default=1, help="runs with each setting (1)")
    parser.add_argument("overrides", nargs="*", help="settings, such as data.train=[train.en,train.de]")
    options = parser.parse_args()
    print(f"| {' | '.join(COLUMNS)} |\n|{len(COLUMNS) * '---|'}")
    for seed in range(1, options.seeds + 1):
        runs = [Run(limit, options.minutes, seed, options.overrides) for limit in LIMITS]
        _nmt("data", runs[0])
        _train(runs)
        for run in runs:
            _nmt("average", run)
            _nmt("eval", run)
            print(f"| {' | '.join(run.cells())} |", flush=True)


def _train(runs: Sequence[Run]) -> None:
    """Train at the same time; other programs run until all runs are planned."""
    with _busy_machine():
        processes = [
            subprocess.Popen([*NMT, "train", *run.words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for run in runs
        ]
        said = [_until_planned(process) for process in processes]
    for begun, process in zip(said, processes, strict=True):
        output, _ = process.communicate()
        if process.returncode:
            raise SystemExit(f"{begun}{output}busy_start: this training has failed")


def _until_planned(process: subprocess.Popen[str]) -> str:
    """Wait for the line that says what was planned, and print it; return all lines until then."""
    assert process.stdout
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith("own.derive"):
            print(line, end="", file=sys.stderr, flush=True)
            break
    return "".join(lines)


@contextmanager
def _busy_machine() -> Iterator[None]:
    with ExitStack() as closing:
        for _ in range(computing_threads()):
            program = closing.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            closing.callback(program.kill)
        yield


def _nmt(stage: str, run: Run) -> None:
    done = subprocess.run(
        [*NMT, stage, *run.words], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}busy_start: nmt {stage} has failed")


if __name__ == "__main__":
    run_tool(main, __file__)
