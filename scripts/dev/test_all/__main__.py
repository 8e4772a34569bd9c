"""Run every test that this machine can: all tests with all extras, the wheel, the documents, old runs, the demo.

    .venv/bin/python scripts/dev/test_all
    .venv/bin/python scripts/dev/test_all --list
    .venv/bin/python scripts/dev/test_all --only wheel old
    .venv/bin/python scripts/dev/test_all --only tests -- -k beam

Stages that install run first, and then two stages at a time. A failed one does not stop the others. The last line
says what was skipped, and why. Words after `--` go to pytest, and without --only they choose the stage `tests`.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package
from test_all.chains import run_demo, run_table3
from test_all.clients import install_clients
from test_all.documents import run_documents
from test_all.environments import install_extras, run_comet, run_tests
from test_all.old_versions import run_old
from test_all.stages import Stage, refuse, run_stages, summary
from test_all.wheel import run_wheel

STAGES = (
    Stage("extras", "install all extras that fit together, in .venv/extras", install_extras, 1, 10, installs=True),
    Stage("clients", "install programs that use exports", install_clients, 1, 20, installs=True),
    Stage("tests", "all tests, including slow ones, with all extras", run_tests, 39, 120),
    Stage("comet", "the tests of COMET, in an environment of its own, .venv/comet", run_comet, 3, 30),
    Stage("wheel", "build the wheel, and use it in a new environment outside the clone", run_wheel, 4, 20),
    Stage("documents", "the commands of README and docs, as they are written, on small text", run_documents, 23, 60),
    Stage("old", "load, score and resume small runs of earlier versions of this project", run_old, 2, 15),
    Stage("table3", "two rows of the small Table 3", run_table3, 1, 15),
    Stage("demo", "the whole demo, with a floor under its BLEU", run_demo, 3, 20),
)


def main() -> int:
    """Run the chosen stages and return 1 if one failed."""
    arguments, words = _arguments(sys.argv[1:])
    if arguments.list:
        for stage in STAGES:
            print(f"{stage.name:10} {stage.minutes:>3g} min  {stage.what}")
        return 0
    only = arguments.only or (["tests"] if words else [stage.name for stage in STAGES])
    if unknown := set(only) - {stage.name for stage in STAGES}:
        names = ", ".join(stage.name for stage in STAGES)
        return refuse(f"there is no stage {', '.join(sorted(unknown))}; the stages are {names}")
    began = time.monotonic()
    results = run_stages([stage for stage in STAGES if stage.name in only], words)
    print("", *summary(results, time.monotonic() - began), sep="\n", flush=True)
    return int(any(result.outcome == "failed" for result in results))


def _arguments(given: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options, and the words for pytest, which follow `--`."""
    own, words = given, []
    if "--" in given:
        place = given.index("--")
        own, words = given[:place], given[place + 1 :]
    parser = argparse.ArgumentParser(
        prog="test_all", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", metavar="STAGE", help="run only these stages, in their usual order")
    parser.add_argument("--list", action="store_true", help="print the stages, their minutes on two cores, and end")
    return parser.parse_args(own), words


if __name__ == "__main__":
    sys.exit(main())
