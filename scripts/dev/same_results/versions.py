"""Run the cases with one version of the code, in a folder of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from same_results.cases import Case
from same_results.records import Record, lines_of, read_results
from same_results.text import write_text

PRINT_RESULTS = ("translate", "score")
"""Commands whose standard output is a result."""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}


class FailedCaseError(Exception):
    """A command has not ended as the case says, so its results say nothing."""


class Version:
    """A version of the code, and the folder in which its commands run."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.source, self.folder = source.absolute(), folder
        folder.mkdir()
        write_text(folder / "text")

    def record(self, case: Case, old: "Version") -> Record:
        """Run a case, with the files of the old version if it asks for these, and return its results."""
        if not case.old:
            return self._record(case, self.folder)
        copy = self.folder.with_name(f"{self.folder.name}-{case.name}")
        shutil.copytree(old.folder, copy, symlinks=True)
        try:
            return self._record(case, copy)
        finally:
            shutil.rmtree(copy)

    def _record(self, case: Case, folder: Path) -> Record:
        found: Record = []
        for command in case.commands:
            done = self._run(command, case.processes, folder)
            if done.returncode != case.code:
                output = "\n".join((done.stdout + done.stderr).splitlines()[-10:])
                raise FailedCaseError(f"{' '.join(command)} ended with exit code {done.returncode}:\n{output}")
            printed = done.stderr if case.code else done.stdout if command[0] in PRINT_RESULTS else ""
            found += lines_of(f"{command[0]} {command[-1]}", printed.replace(str(folder), "FOLDER"))
        return found + [each for pattern in case.files for each in read_results(folder, pattern)]

    def _run(self, command: Sequence[str], processes: int, folder: Path) -> subprocess.CompletedProcess[str]:
        launcher = (
            [] if processes == 1 else ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "-m"]
        )
        environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(self.source)}
        words = [sys.executable, "-m", *(launcher if processes > 1 else []), "nmt", *command]
        return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
