"""Show that two versions of the code give the same results, to the last digit, on small fixed cases.

    git worktree add ../before HEAD~1
    .venv/bin/python scripts/dev/same_results ../before/src src
    .venv/bin/python scripts/dev/same_results ../before/src src --only plain beam

Only the command line is used, so modules may have moved. Compared are losses and gradient norms of each step, the
weights of the last checkpoint, prepared data, translations and scores. In the cases whose names begin with `old`, both
continue with the files that the first version has written.

Everything runs on a CPU with one thread, so nothing is said about code that only a GPU runs.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # finds this package
from same_results.cases import CASES, TWO_PROCESSES, with_needed, write_text

ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
PRINT_RESULTS = ("translate", "score")
"""Commands whose standard output is a result."""
MANIFEST = "manifest.json"
"""A file of prepared data that holds times and what the data depends on, but no results."""
NOT_RESULTS = ("time", "seconds", "sentences_per_second", "tokens_per_second", "machine", "decoding", "checkpoint")
"""Fields of JSON files that hold times, or what the results were made with."""


class FailedCaseError(Exception):
    """A command has failed, so its results say nothing."""


def main() -> int:
    """Print one line per case; return 1 if the results of a case differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="the folder with the code of the version before")
    parser.add_argument("after", type=Path, help="the folder with the code of the version after")
    parser.add_argument("--only", nargs="+", default=[], choices=CASES, metavar="NAME", help="and what these need")
    options = parser.parse_args()
    started, wrong = time.monotonic(), list[str]()
    with tempfile.TemporaryDirectory(prefix="same-results-") as place:
        folders = [Path(place) / "before", Path(place) / "after"]
        for folder in folders:
            write_text(folder / "text")
        for name, case in with_needed(options.only).items():
            outcome = _outcome(name, (options.before.absolute(), options.after.absolute()), folders)
            if missing := [each for each in case.needs if each in wrong]:
                outcome = f"{outcome or 'equal'}, after {', '.join(missing)}"
            print(f"{name:24} {outcome or 'equal'}", flush=True)
            wrong += [name] * bool(outcome)
    print(f"not equal: {', '.join(wrong)};" if wrong else "all equal,", f"in {time.monotonic() - started:.0f} s")
    return int(bool(wrong))


def _outcome(name: str, sources: tuple[Path, Path], folders: list[Path]) -> str:
    """Return how the results of a case differ; an empty text if they are equal."""
    used = folders
    if CASES[name].old:
        used = [folder.with_name(f"{folder.name}-{name}") for folder in folders]
        for copy in used:
            shutil.copytree(folders[0], copy, symlinks=True)
    try:
        before, after = (_results(name, source, folder) for source, folder in zip(sources, used, strict=True))
    except FailedCaseError as error:
        return str(error)
    pairs = zip_longest(before, after, fillvalue="nothing")
    return next((f"before: {one}; after: {other}" for one, other in pairs if one != other), "")


def _results(name: str, source: Path, folder: Path) -> list[str]:
    """Run a case with one version of the code, and return its results, line by line."""
    case, found = CASES[name], list[str]()
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m"] if name in TWO_PROCESSES else []
    for command in case.commands:
        words = [sys.executable, "-m", *torchrun, "nmt", *command]
        environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(source)}
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            output = "\n".join((done.stdout + done.stderr).splitlines()[-10:])
            raise FailedCaseError(f"{' '.join(command)} ended with exit code {done.returncode}:\n{output}")
        found += done.stdout.splitlines() if command[0] in PRINT_RESULTS else []
    paths = [path for pattern in case.files for path in sorted(folder.glob(pattern)) if path.is_file()]
    return found + [f"{path.relative_to(folder)}: {line}" for path in paths for line in _content(path)]


def _content(path: Path) -> Iterator[str]:
    """Yield the results that a file holds."""
    content = path.read_bytes()
    if path.suffix == ".safetensors":
        start = 8 + int.from_bytes(content[:8], "little")
        for name, tensor in sorted(json.loads(content[8:start]).items()):
            if name != "__metadata__":
                begin, end = (start + offset for offset in tensor["data_offsets"])
                yield f"{name} {tensor['dtype']} {tensor['shape']} {sha256(content[begin:end]).hexdigest()}"
    elif path.suffix in (".json", ".jsonl") and path.name != MANIFEST:
        for line in content.decode().splitlines() if path.suffix == ".jsonl" else [content.decode()]:
            yield json.dumps(_without_times(json.loads(line)), ensure_ascii=False)
    elif path.suffix in (".txt", ".links"):
        yield from content.decode().splitlines()
    elif path.name != MANIFEST:
        yield sha256(content).hexdigest()


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_times(each) for key, each in value.items() if key not in NOT_RESULTS}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    sys.exit(main())
