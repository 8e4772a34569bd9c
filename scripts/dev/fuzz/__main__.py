"""Try hostile and odd input on everything that reads; print the numbers of inputs and failures.

    .venv/bin/python scripts/dev/fuzz --examples 2000
    .venv/bin/python scripts/dev/fuzz --seconds 600 sgm checkpoint
    .venv/bin/python scripts/dev/fuzz --long-line

Each target runs in a process of its own, so that a crash or an endless loop counts as a failure. The inputs depend only
on --seed; a failure is printed with the smallest input that shows it.
"""

import argparse
import faulthandler
import json
import math
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package and `shared`
from fuzz import commands, imported, long_line, mixtures, overlaps, prepared, readers, served
from fuzz.campaign import run
from shared.command_line import at_least, positive, run_tool, tool_parser

TARGETS = {
    "text": readers.text,
    "packed": readers.packed,
    "tsv": readers.tsv,
    "sgm": readers.sgm,
    "trees": readers.trees,
    "json": readers.json_lines,
    "csv": readers.comma_separated,
    "scores": readers.scores,
    "parquet": readers.parquet,
    "hub": readers.local_hub,
    "store": prepared.store,
    "manifest": prepared.manifest,
    "tokenizer": prepared.tokenizer,
    "checkpoint": prepared.checkpoint,
    "import": imported.marian,
    "mixture": mixtures.plans,
    "overlap": overlaps.overlaps,
    "overrides": commands.overrides,
    "settings": commands.settings,
    "translate": commands.translate_input,
    "score": commands.score_input,
    "serve": served.routes,
    "answers": served.answers,
    "synthesize": commands.synthesize_input,
}


def main() -> int:
    """Try the named targets; return 1 if one failed."""
    arguments = _arguments()
    if arguments.long_line:
        return long_line.main()
    if arguments.in_this_process:
        return _in_this_process(arguments)
    print(f"{'target':<12}{'inputs':>10}{'refused':>10}{'unexplained':>13}", flush=True)
    counts = [_in_process(name, arguments) for name in arguments.targets or TARGETS]
    tried, refused, failed = map(sum, zip(*counts, strict=True))
    print(f"{'all':<12}{tried:>10,}{refused:>10,}{failed:>13,}")
    return int(failed > 0)


def _in_process(name: str, arguments: argparse.Namespace) -> tuple[int, int, int]:
    """Try one target in another process."""
    options = [f"--{key}={getattr(arguments, key)}" for key in ("examples", "seconds", "seed")]
    done = subprocess.run(
        [sys.executable, Path(__file__).parent, *options, "--in-this-process", name],
        check=False, capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    last = done.stdout.splitlines()[-1:]
    tried, refused, failed = json.loads(last[0]) if last and done.returncode in (0, 1) else (0, 0, 1)
    print(f"{name:<12}{tried:>10,}{refused:>10,}{failed:>13,}", flush=True)
    if failed:
        print(f"--- {name}, exit code {done.returncode}\n{done.stderr}", file=sys.stderr, flush=True)
    return tried, refused, failed


def _in_this_process(arguments: argparse.Namespace) -> int:
    """Try one target in this process; the last line of output gives the counts."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        sandbox = home / "sandbox"
        sandbox.mkdir(parents=True)
        tempfile.tempdir = str(sandbox)
        os.environ["HF_HOME"], os.environ["HF_HUB_OFFLINE"] = str(sandbox / "hub"), "1"
        faulthandler.enable()
        target = TARGETS[arguments.targets[0]]
        outcome = run(target, sandbox, arguments.examples, arguments.seconds, arguments.seed)
    for failure in outcome.failures:
        traceback.print_exception(failure)
    print(json.dumps([outcome.tried, outcome.refused, len(outcome.failures)]))
    return int(bool(outcome.failures))


def _arguments() -> argparse.Namespace:
    assert __doc__
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--examples", type=at_least(1), default=1000, help="inputs per target (1000)")
    parser.add_argument("--seconds", type=positive, default=math.inf, help="longest time per target")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random inputs (1)")
    parser.add_argument(
        "--long-line", action="store_true", help="instead, stream a line of 1 GB into data and translate"
    )
    parser.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    run_tool(main, __file__)
