"""Show that two versions of the code give the same results, to the last digit, on small fixed cases.

    git worktree add ../before HEAD~1
    .venv/bin/python scripts/dev/same_results ../before/src src
    .venv/bin/python scripts/dev/same_results ../before/src src --only plain beam errors

Only the command line is used, so modules may have moved. Compared are losses and gradient norms of each step, the
weights of the last checkpoint, prepared data, translations, scores and the messages of errors. The cases whose names
begin with `old` continue with the files that the version before has written.

Everything runs on a CPU with one thread and the operations in C, so nothing is said about code that only a GPU runs, or
only a CPU without a C compiler.
"""

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package and `shared`
from same_results.cases import CASES, Case, with_needed
from same_results.records import first_difference
from same_results.versions import FailedCaseError, Version
from shared.command_line import run_tool, source_folder, tool_parser


def main() -> int:
    """Print one line per case; return 1 if the results of a case differ."""
    arguments = _arguments()
    if arguments.list:
        print(*CASES, sep="\n")
        return 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="same-results-") as name:
        before = Version(arguments.before, Path(name) / "before")
        after = Version(arguments.after, Path(name) / "after")
        with ThreadPoolExecutor(arguments.jobs) as pool:
            wrong = compare(before, after, with_needed(tuple(arguments.only)), pool)
    used = getrusage(RUSAGE_CHILDREN)
    seconds = f"in {time.monotonic() - started:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor time"
    print(f"not equal: {', '.join(wrong)};" if wrong else "all equal,", seconds)
    return int(bool(wrong))


def compare(before: Version, after: Version, cases: list[Case], pool: ThreadPoolExecutor) -> list[str]:
    """Compare the results of each case, and return the names of the cases that failed or differ.

    A case that needs one of these is left out.
    """
    wrong: list[str] = []
    for case in cases:
        if missing := [name for name in case.needs if name in wrong]:
            outcome = f"left out, because it needs {', '.join(missing)}"
        else:
            outcome = _outcome(before, after, case, pool)
        print(f"{case.name:24} {outcome or 'equal'}", flush=True)
        if outcome:
            wrong.append(case.name)
    return wrong


def _outcome(before: Version, after: Version, case: Case, pool: ThreadPoolExecutor) -> str:
    """Return how the results of a case differ; an empty text if they are equal."""
    recording = [pool.submit(version.record, case, before) for version in (before, after)]
    try:
        return first_difference(*(each.result() for each in recording))
    except FailedCaseError as error:
        return str(error)


def _arguments() -> argparse.Namespace:
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("before", type=source_folder, help="the folder with the code of the version before")
    parser.add_argument("after", type=source_folder, help="the folder with the code of the version after")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="run only these cases and what they need")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=1, help="2 runs both versions at the same time")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.only if name not in CASES]:
        parser.error(f"there is no case {unknown[0]}: choose from {', '.join(CASES)}")
    return arguments


if __name__ == "__main__":
    run_tool(main, __file__)
