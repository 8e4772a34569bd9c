"""Change the source in small ways, one at a time, and count the changes that the tests of the module notice.

    .venv/bin/python scripts/dev/mutants
    .venv/bin/python scripts/dev/mutants --sample 400 --seed 2 decoding/beam storage/files
    .venv/bin/python scripts/dev/mutants --checkout ../before

A mutant is the module with another comparison, operator, constant or condition, without a statement, or with nothing
returned. Its tests run in a forked process up to the first failure. It is killed if a test fails, hangs or cannot be
imported. Mutants that survive are listed: each is equivalent to the original, or shows an assertion that is missing.
Everything happens in a temporary copy of the checkout.
"""

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package and `shared`
from mutants.mutations import mutations
from shared.command_line import at_least, existing_folder, run_tool, tool_parser

TESTS = {
    "data/batches": (
        "unit/data/test_batches.py",
        "unit/data/test_shapes.py",
        "features/mixtures/test_rounds.py",
        "features/noise/test_noisy_batches.py",
    ),
    "training/loss": ("unit/training/test_loss.py",),
    "decoding/beam": (
        "unit/decoding/test_beam.py",
        "features/constraints/test_controls.py",
        "features/sampling/test_sampling.py",
        "unit/model/kernels/test_c_decoding.py",
    ),
    "runs/checkpoints": ("unit/runs/test_checkpoints.py", "unit/training/test_checkpointing.py"),
    "storage/files": ("unit/storage/test_files.py", "unit/runs/test_checkpoints.py"),
}
"""The tests of each module, in tests/."""
IMPORTED = ("hypothesis", "numpy", "pyarrow", "sacrebleu", "sentencepiece", "torch", "torch._dynamo", "hydra", "pytest")
"""What is imported once, before the processes are forked."""
SLOWNESS = 5
"""How many times as long as the original a mutant may run, and the seconds that it may always run besides."""
LEAST_SECONDS = 20


def main() -> int:
    """Print the share of mutants that were killed; return 1 if it is below the floor for a module."""
    arguments = _arguments()
    for name in IMPORTED:
        import_module(name)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "checkout"
        _copy(arguments.checkout, copy)
        shares = [_try_module(copy, name, arguments.sample, arguments.seed) for name in arguments.modules or TESTS]
    return int(min(shares) < arguments.floor)


def _arguments() -> argparse.Namespace:
    parser = tool_parser(__file__, __doc__)
    parser.add_argument("modules", nargs="*", choices=[*TESTS, []], metavar="MODULE", help=", ".join(TESTS))
    parser.add_argument("--sample", type=at_least(1), default=40, help="mutants per module (40)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the choice of mutants (1)")
    parser.add_argument("--floor", type=float, default=0.85, help="smallest share of killed mutants (0.85)")
    parser.add_argument(
        "--checkout", type=existing_folder, default=Path(__file__).parents[3], help="the code and tests to try (these)"
    )
    return parser.parse_args()


def _copy(checkout: Path, to: Path) -> None:
    """Copy the files of a checkout that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=checkout, capture_output=True,
        text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, listed):
        if (checkout / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(checkout / name, to / name)


def _try_module(copy: Path, name: str, sample: int, seed: int) -> float:
    """Try a random sample of a module's mutants, and return the share that was killed."""
    path = copy / "src" / "nmt" / f"{name}.py"
    original = path.read_text(encoding="utf-8")
    tests = [f"tests/{test}" for test in TESTS[name]]
    started = time.monotonic()
    if _run(copy, tests, 3600):
        raise SystemExit(f"mutants: the tests of {name} fail without any change")
    limit = LEAST_SECONDS + SLOWNESS * (time.monotonic() - started)
    tree = ast.parse(original)
    found = mutations(tree)
    chosen = random.Random(f"{seed} {name}").sample(found, min(sample, len(found)))
    killed = 0
    for mutation in sorted(chosen, key=lambda each: each.line):
        mutation.apply()
        path.write_text(ast.unparse(tree), encoding="utf-8")
        mutation.undo()
        if _run(copy, tests, limit):
            killed += 1
        else:
            print(f"{name}.py:{mutation.line}: survived: {mutation.what}", flush=True)
    path.write_text(original, encoding="utf-8")
    print(f"{name}: {killed} of {len(chosen)} mutants killed ({killed / len(chosen):.0%}), of {len(found)}", flush=True)
    return killed / len(chosen)


def _run(copy: Path, tests: Sequence[str], seconds: float) -> int:
    """Run tests in a forked process up to the first failure; return 0 if all passed."""
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        _be_pytest(copy, tests)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 1


def _be_pytest(copy: Path, tests: Sequence[str]) -> None:
    """Run tests and end this process, whose exit code is that of pytest."""
    code = 1
    try:
        os.setsid()
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        os.chdir(copy)
        sys.path[:0] = [str(copy / "src"), str(copy)]
        os.environ["PYTHONPATH"] = str(copy / "src")
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True  # a mutant may have the size and the time of another
        code = int(sys.modules["pytest"].main(["-x", "-q", "-p", "no:cacheprovider", *tests]))
    finally:
        os._exit(code)


if __name__ == "__main__":
    run_tool(main, __file__)
