"""Do a seeded choice of faults to every stage of a small chain, give the plain command after each, and count.

    .venv/bin/python scripts/faults
    .venv/bin/python scripts/faults --only "flipped bit" --stage eval
    .venv/bin/python scripts/faults --trials 12 --seed 3

After each fault the final files must be those of a chain that nothing interrupted, bit for bit; no temporary file may
be left, and nobody may see a traceback. Linux only; root is needed for the trials with file systems of their own.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from aftermath import Outcome, Trial, Verdict
from ranks import prepare_pair
from trials import judge, plan
from workshop import Workshop

MOUNTS = ("file system full",)
"""Kinds that only root can try."""


def main() -> int:
    """Try them all; the exit code says whether any was lost."""
    arguments = _arguments()
    folder = Path(tempfile.mkdtemp(prefix="faults-", dir=arguments.folder))
    started = time.monotonic()
    shop = Workshop(folder)
    prepare_pair(shop)
    trials = _chosen(arguments, plan(arguments.seed, shop))
    print(f"{len(trials)} faults with seed {arguments.seed}, in {folder}", flush=True)
    results = _try_all(shop, trials, arguments.jobs)
    print("", *_table(results), sep="\n")
    lost = [(trial, outcome) for trial, outcome in results if outcome.verdict is Verdict.LOST]
    for trial, outcome in lost:
        print(f"LOST: {trial.kind}, {trial.stage}, {trial.what}: {outcome.note}")
    print(f"\n{time.monotonic() - started:.0f} s")
    if not lost:
        shutil.rmtree(folder)
    return int(bool(lost))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="another one chooses other moments and places")
    parser.add_argument("--trials", type=int, default=0, help="try only so many, of as many kinds as can be")
    parser.add_argument("--only", nargs="+", default=[], metavar="KIND", help="try only these kinds")
    parser.add_argument("--stage", default="", help="try only this stage")
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at the same time")
    parser.add_argument("--folder", help="where to work (some megabytes)")
    return parser.parse_args()


def _chosen(arguments: argparse.Namespace, trials: list[Trial]) -> list[Trial]:
    """Those asked for; where they are few, one of each kind comes before the second of any."""
    chosen = [
        trial
        for trial in trials
        if (not arguments.only or trial.kind in arguments.only)
        and arguments.stage in ("", trial.stage)
        and (os.getuid() == 0 or trial.kind not in MOUNTS)
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


def _try_all(shop: Workshop, trials: list[Trial], jobs: int) -> list[tuple[Trial, Outcome]]:
    """Share the trials out among forked processes, and gather what they write down."""
    notes = [shop.folder / f"results.{job}" for job in range(jobs)]
    workers = []
    for job, note in enumerate(notes):
        pid = os.fork()
        if not pid:
            _work(shop, trials, range(job, len(trials), jobs), note)
        workers.append(pid)
    for pid in workers:
        os.waitpid(pid, 0)
    found: dict[int, Outcome] = {}
    for note in notes:
        for line in note.read_text().splitlines():
            number, verdict, words = json.loads(line)
            found[number] = Outcome(Verdict(verdict), words)
    missing = Outcome(Verdict.LOST, "the campaign itself failed")
    return [(trial, found.get(number, missing)) for number, trial in enumerate(trials)]


def _work(shop: Workshop, trials: list[Trial], numbers: range, note: Path) -> None:
    """Be a worker, and never return."""
    try:
        with note.open("w", buffering=1) as file:
            for number in numbers:
                outcome = judge(shop, trials[number], shop.folder / f"trial-{number}")
                file.write(json.dumps([number, outcome.verdict, outcome.note]) + "\n")
                trial = trials[number]
                print(
                    f"{outcome.verdict:9} {trial.kind}, {trial.stage}, {trial.what}  {outcome.note[:160]}", flush=True
                )
    finally:
        sys.stdout.flush()
        os._exit(0)


def _table(results: list[tuple[Trial, Outcome]]) -> list[str]:
    """A line for each kind of fault."""
    kinds = list(dict.fromkeys(trial.kind for trial, _ in results))
    counts = Counter((trial.kind, outcome.verdict) for trial, outcome in results)
    totals = Counter(outcome.verdict for _, outcome in results)
    lines = [f"{'fault':<32}{'tried':>7}{'recovered':>11}{'refused with a clear line':>27}{'lost':>6}"]
    rows = [(kind, {verdict: counts[kind, verdict] for verdict in Verdict}) for kind in kinds]
    for name, row in [*rows, ("all", {verdict: totals[verdict] for verdict in Verdict})]:
        recovered, refused, lost = (row[verdict] for verdict in Verdict)
        lines.append(f"{name:<32}{recovered + refused + lost:>7}{recovered:>11}{refused:>27}{lost:>6}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
