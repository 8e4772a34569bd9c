"""The engines: install the peers in virtual environments, and run each engine's driver."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from nmt.compute.cores import cpu_description
from nmt.errors import UserError

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PEERS = ROOT / ".bench"
TORCH = "torch==2.13.0"
GLIBC_TUNING = {
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "MALLOC_TOP_PAD_": "268435456",
}
"""Environment variables that make glibc keep large buffers, as nmt sets it for itself."""
AVX2 = ("ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "CT2_FORCE_CPU_ISA")
CPUS: dict[str, dict[str, str]] = {
    "native": {},
    "avx2": {name: "avx2" if name == "ATEN_CPU_CAPABILITY" else "AVX2" for name in AVX2},
}
"""Environment variables with which PyTorch, MKL and CTranslate2 use the instructions of another kind of CPU."""


class Engine(NamedTuple):
    """A program that trains or translates, and its driver."""

    title: str
    driver: str
    packages: tuple[str, ...] = ()
    """Packages of its virtual environment; empty if it runs in nmt's own."""


READERS = ("numpy", "pyyaml", "safetensors", "sentencepiece", "sacremoses")
ENGINES = {
    "ours": Engine("nmt", "run_ours.py"),
    "huggingface": Engine("Hugging Face Marian", "run_huggingface.py", (TORCH, "transformers>=5", *READERS)),
    "eole": Engine("eole", "run_eole.py", (TORCH, "eole==0.6.4", "aiohttp")),
    "peak": Engine("matrix product", "run_ours.py"),
    "interface": Engine("nmt and CTranslate2", "run_interface.py"),
}


class Bench(NamedTuple):
    """The settings that all jobs of a run share."""

    peers: Path
    threads: int
    cpu: str = "native"
    """The kind of CPU whose instructions are used; see `CPUS`."""

    @property
    def machine(self) -> str:
        """The kind of CPU that figures are from, and the threads."""
        limit = f", limited to {self.cpu}" if CPUS[self.cpu] else ""
        return f"{cpu_description()}{limit}, {self.threads} threads"

    def run(self, name: str, job: dict[str, Any], text: Path | None = None) -> dict[str, Any]:
        """Run a job in a new process of the engine's driver; "refused" gives the reason if there is no result."""
        found = self._measured(name, {**job, "threads": self.threads, "text": str(text)})
        shown = {name: value for name, value in found.items() if name != "hypotheses"}
        print(f"{name}: {json.dumps(shown)}", file=sys.stderr, flush=True)
        return found

    def _measured(self, name: str, job: dict[str, Any]) -> dict[str, Any]:
        engine = ENGINES[name]
        python = self.peers / name / "bin" / "python" if engine.packages else Path(sys.executable)
        if not python.exists():
            return {"refused": f"not installed: .venv/bin/python scripts/bench setup {name}"}
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            result = Path(folder) / "result.json"
            Path(folder, "job.json").write_text(json.dumps({**job, "folder": folder, "result": str(result)}))
            command = [str(python), str(HERE / "drivers" / engine.driver), f"{folder}/job.json"]
            done = subprocess.run(
                command, env=self.environment(), capture_output=True, text=True, errors="replace", check=False
            )
            if result.exists():
                return dict(json.loads(result.read_text(encoding="utf-8")))
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        return {"refused": f"failed with exit code {done.returncode}: {''.join(last)}"}

    def environment(self) -> dict[str, str]:
        """Return the environment variables of a process that is measured."""
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(self.threads))
        quiet = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled", "TOKENIZERS_PARALLELISM": "false"}
        return {**os.environ, **threads, **quiet, **CPUS[self.cpu], **GLIBC_TUNING, "PYTHONPATH": str(ROOT / "src")}


def required(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a job without which there is nothing to print."""
    if "refused" in result:
        raise UserError(result["refused"])
    return result


def setup(names: Iterable[str], peers: Path) -> int:
    """Create the environments of these peers with pip; return the number that failed."""
    failed = 0
    for name in names:
        print(f"setting up {name} in {peers / name}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(peers / name)], check=True)
        pip = [str(peers / name / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        failed += bool(subprocess.run([*pip, *ENGINES[name].packages], check=False).returncode)
    return failed


def print_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Print a Markdown table."""
    for row in (head, (":--", *["--:"] * (len(head) - 1)), *rows):
        print(f"| {' | '.join(row)} |")
