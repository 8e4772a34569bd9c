"""The engines: install the peers in virtual environments, and run each engine's driver."""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from nmt.compute.cores import cpu_description
from nmt.errors import UserError

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PEERS = ROOT / ".bench"
TORCH = "torch==2.13.0"
READERS = ("numpy", "pyyaml", "sacrebleu", "sacremoses", "safetensors", "sentencepiece")
"""Packages that read nmt's checkpoints; transformers also needs them to load a Marian model."""
GLIBC_TUNING = {
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "MALLOC_TOP_PAD_": "268435456",
}
"""Environment variables that make glibc keep large buffers instead of returning them to the system."""
CPUS: dict[str, dict[str, str]] = {
    "native": {},
    "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "CT2_FORCE_CPU_ISA": "AVX2"},
}
"""Environment variables with which PyTorch and CTranslate2 use the instructions of another kind of CPU."""
MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


class Engine(NamedTuple):
    """A program that trains or translates, and its driver."""

    title: str
    driver: str
    packages: tuple[str, ...] = ()
    """Packages of its virtual environment; empty if it runs in nmt's own."""
    precisions: tuple[str, ...] = ("fp32", "bf16")


ENGINES = {
    "ours": Engine("nmt", "run_ours.py"),
    "huggingface": Engine("Hugging Face Marian", "run_huggingface.py", (TORCH, "transformers>=5", *READERS)),
    "eole": Engine("eole", "run_eole.py", (TORCH, "eole==0.6.4", "aiohttp")),
    "ctranslate2": Engine("CTranslate2", "run_ctranslate2.py", (TORCH, "ctranslate2>=4.5", *READERS), ("fp32", "int8")),
    "peak": Engine("matrix product", "run_peak.py"),
    "profile": Engine("nmt", "run_profile.py"),
}


class Bench(NamedTuple):
    """The settings that all jobs of a run share."""

    peers: Path
    threads: int
    record: Path
    """A file that gets a line of JSON per job, as soon as it is done."""
    cpu: str = "native"
    """The kind of CPU whose instructions are used; see `CPUS`."""
    timeout: float = 3600.0
    """Seconds after which a driver is killed."""

    def print_title(self, text: str) -> None:
        """Print the title of a table, and the kind of CPU that its figures are from."""
        limit = f", limited to {self.cpu}" if CPUS[self.cpu] else ""
        print(f"\n{text}\n{cpu_description()}{limit}\n")

    def run(self, name: str, job: dict[str, Any], *, tuned: bool = False, processes: int = 1) -> dict[str, Any]:
        """Run a job in a new process of the engine's driver; "refused" gives the reason if there is no result."""
        engine = ENGINES[name]
        python = self._python(name)
        if not python.exists():
            found = {"refused": f"not installed: scripts/bench setup {name}"}
            self.note({"engine": name, **found})
            return found
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            result, log = Path(folder) / "result.json", Path(folder) / "log"
            complete = {**job, "threads": self.threads, "folder": folder, "result": str(result)}
            (Path(folder) / "job.json").write_text(json.dumps(complete), encoding="utf-8")
            command = [str(python), str(HERE / "drivers" / engine.driver), f"{folder}/job.json"]
            if processes > 1:
                launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
                command[1:1] = launcher
            began = time.perf_counter()
            code = self._wait(command, log, tuned=tuned)
            if result.exists():
                found = dict(json.loads(result.read_text(encoding="utf-8")))
            elif time.perf_counter() - began >= self.timeout:
                found = {"refused": f"had no result after {self.timeout:g} s, and was ended"}
            else:
                found = {"refused": _reason(name, code, log)}
        self.note({"engine": name, "precision": job.get("precision", ""), "kind": job["kind"], **found})
        return found

    def note(self, row: dict[str, Any]) -> None:
        """Print a result, and add it to the record."""
        row = {key: value for key, value in row.items() if key not in ("hypotheses", "operators", "points")}
        _log(
            ", ".join(
                f"{key} {value:,.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
            )
        )
        self.record.parent.mkdir(parents=True, exist_ok=True)
        with self.record.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(row)}\n")

    def _python(self, name: str) -> Path:
        return self.peers / name / "bin" / "python" if ENGINES[name].packages else Path(sys.executable)

    def _wait(self, command: list[str], log: Path, *, tuned: bool) -> int:
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env=self.environment(tuned=tuned))
            timer = threading.Timer(self.timeout, process.kill)
            timer.start()
            try:
                return process.wait()
            finally:
                timer.cancel()
                process.kill()

    def environment(self, *, tuned: bool = False) -> dict[str, str]:
        """Return the environment variables of a process that is measured."""
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(self.threads))
        quiet = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled", "TOKENIZERS_PARALLELISM": "false"}
        inherited = {key: value for key, value in os.environ.items() if key not in GLIBC_TUNING}
        tuning = GLIBC_TUNING if tuned else {}
        return {**inherited, **threads, **quiet, **CPUS[self.cpu], **tuning, "PYTHONPATH": str(ROOT / "src")}


def _reason(name: str, code: int, log: Path) -> str:
    """Return why a driver has no result."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    last = lines[-1] if lines else "it printed nothing"
    if missing := MISSING.fullmatch(last):
        return f"lacks the package {missing[1]}: run scripts/bench setup {name}"
    return f"failed with exit code {code}: {last}"


def required(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a job without which there is nothing to print."""
    if "refused" in result:
        raise UserError(result["refused"])
    return result


def setup(names: Iterable[str], peers: Path) -> int:
    """Create the environments of these peers with pip; return the number that failed."""
    failed = 0
    for name in names:
        if not ENGINES[name].packages:
            continue
        _log(f"setting up {name} in {peers / name}")
        subprocess.run([sys.executable, "-m", "venv", str(peers / name)], check=True)
        pip = [str(peers / name / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        done = subprocess.run([*pip, *ENGINES[name].packages], check=False)
        if done.returncode:
            failed += 1
            _log(f"{name} could not be installed; benchmarks will list it as missing")
    return failed


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
