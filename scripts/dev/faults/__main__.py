"""Inject seeded faults into every command of a small chain, repeat the command after each, and count the outcomes.

    .venv/bin/python scripts/dev/faults
    .venv/bin/python scripts/dev/faults --only "flipped bit" --command eval
    .venv/bin/python scripts/dev/faults --trials 12 --seed 3
    .venv/bin/python scripts/dev/faults --seeds 4 --record faults.jsonl

After each fault the final files must equal those of an uninterrupted chain, bit for bit; no temporary file may
remain, and no traceback may appear. A fault that the command never met is listed, but not counted. Linux only; trials
that mount file systems need root.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Event

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package and `shared`
from faults.process_pairs import prepare_pair
from faults.recovery import INTERRUPTED, Outcome, Trial, Verdict
from faults.sandbox import CHAIN, Sandbox
from faults.summary import table, total
from faults.trials import judge, plan
from shared.command_line import at_least, run_tool, tool_parser

ROOT_ONLY = ("file system full",)
"""Kinds of fault that need root."""
POSSIBLE_BYTES = 12_000
"""The size of a file that is large enough for all kinds of faults."""


def main() -> int:
    """Run the chosen trials and return 1 if any was lost."""
    arguments = _arguments()
    if arguments.folder:
        Path(arguments.folder).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="faults-", dir=arguments.folder))
    started = time.monotonic()
    sandbox = Sandbox(folder)
    prepare_pair(sandbox)
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    trials = _chosen(arguments, plan(seeds, sandbox.file_calls, sandbox.written))
    print(f"{len(trials):,} faults, seeds {seeds[0]} to {seeds[-1]}, in {folder}", flush=True)
    record = Path(arguments.record or folder / "results.jsonl").absolute()
    results = _run_all(sandbox, trials, arguments.jobs, record)
    seconds = time.monotonic() - started
    print("", *table(results), "", *_exceptions(results), f"{total(results)}, in {seconds:,.0f} s", sep="\n")
    lost = any(outcome.verdict is Verdict.LOST for _, outcome in results)
    if not lost:
        shutil.rmtree(folder)
    if len(results) < len(trials):
        print(f"faults: ended after {len(results):,} of {len(trials):,} faults", file=sys.stderr)
        return INTERRUPTED
    return int(lost)


def _arguments() -> argparse.Namespace:
    possible = plan(range(1), dict.fromkeys(CHAIN, 1), dict.fromkeys(CHAIN, (POSSIBLE_BYTES,)))
    kinds, commands = sorted({trial.kind for trial in possible}), list(CHAIN)
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments and places of the faults")
    parser.add_argument(
        "--seeds", type=at_least(1), default=1, help="number of consecutive seeds, for a larger campaign"
    )
    parser.add_argument(
        "--trials", type=at_least(0), default=0, help="run only this many trials, of as many kinds as possible"
    )
    parser.add_argument("--only", nargs="+", default=[], choices=kinds, metavar="KIND", help="run only these kinds")
    parser.add_argument("--command", default="", choices=commands, help="run only faults of this command")
    parser.add_argument("--jobs", type=at_least(1), default=2, help="number of parallel trials")
    parser.add_argument("--record", help="file for the outcomes, a line of JSON each, as they come")
    parser.add_argument("--folder", help="parent of the working folder (some megabytes)")
    arguments = parser.parse_args()
    if not _chosen(arguments, possible):
        parser.error(
            "these options leave no fault: this command has none of these kinds, or `file system full` needs root"
        )
    return arguments


def _chosen(arguments: argparse.Namespace, trials: list[Trial]) -> list[Trial]:
    """Return the trials asked for; if their number is limited, first one of each kind, then a second of each."""
    chosen = [
        trial
        for trial in trials
        if (not arguments.only or trial.kind in arguments.only)
        and arguments.command in ("", trial.command)
        and (os.getuid() == 0 or trial.kind not in ROOT_ONLY)
    ]
    if not arguments.trials:
        return chosen
    random.Random(arguments.seed).shuffle(chosen)
    seen: Counter[str] = Counter()
    turns = []
    for trial in chosen:
        turns.append(seen[trial.kind])
        seen[trial.kind] += 1
    order = sorted(range(len(chosen)), key=turns.__getitem__)
    return [chosen[index] for index in order[: arguments.trials]]


def _run_all(sandbox: Sandbox, trials: list[Trial], jobs: int, record: Path) -> list[tuple[Trial, Outcome]]:
    """Divide the trials between forked processes; return the outcomes that they wrote, also after an interruption."""
    record.write_text("")
    workers = []
    for job in range(jobs):
        pid = os.fork()
        if not pid:
            _run_worker(sandbox, trials, range(job, len(trials), jobs), record)
        workers.append(pid)
    for pid in workers:
        try:
            os.waitpid(pid, 0)
        except KeyboardInterrupt:
            for each in workers:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGINT)
            os.waitpid(pid, 0)
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    found = {each["number"]: Outcome(Verdict(each["verdict"]), each["note"]) for each in lines}
    return [(trials[number], found[number]) for number in sorted(found)]


def _run_worker(sandbox: Sandbox, trials: list[Trial], numbers: range, record: Path) -> None:
    """Run trials in a worker process, which ends here; write and print each outcome.

    An interruption ends it after the present trial, which does not count, because its commands are interrupted as well.
    """
    interrupted = Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    try:
        with record.open("a", buffering=1) as file:
            for number in numbers:
                trial = trials[number]
                outcome = judge(sandbox, trial, sandbox.folder / f"trial-{number}")
                if interrupted.is_set():
                    break
                row = {"number": number, "fault": trial.kind, "command": trial.command, "what": trial.what}
                file.write(json.dumps({**row, **asdict(outcome)}) + "\n")
                print(
                    f"{outcome.verdict:14} {trial.kind}, {trial.command}, {trial.what}  {outcome.note[:160]}",
                    flush=True,
                )
    except BaseException:  # of the campaign itself: its trials are missing in the end
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(0)


def _exceptions(results: list[tuple[Trial, Outcome]]) -> list[str]:
    """Return a line for each fault that was lost or never injected."""
    return [
        f"{outcome.verdict.upper()}: {trial.kind}, {trial.command}, {trial.what}: {outcome.note}"
        for trial, outcome in results
        if outcome.verdict in (Verdict.LOST, Verdict.MISSED)
    ]


if __name__ == "__main__":
    run_tool(main, __file__)
