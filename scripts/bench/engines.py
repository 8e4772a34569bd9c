"""The engines: where each lives, how it is set up, and how its driver is run."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PEERS = ROOT / ".bench"
TORCH = "torch==2.13.0"
READING = ("numpy", "safetensors", "sentencepiece", "sacremoses")
"""What it takes to read this project's checkpoints, and for transformers to load a Marian model."""
KEPT = {
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "MALLOC_TOP_PAD_": "268435456",
}
"""Tells glibc to keep large buffers instead of handing them back to the system."""


class Engine(NamedTuple):
    """Something that trains or translates."""

    title: str
    driver: str
    packages: tuple[str, ...] = ()
    """What its environment is made of; none for this project's own."""
    precisions: tuple[str, ...] = ("fp32", "bf16")


ENGINES = {
    "ours": Engine("nmt", "run_ours.py"),
    "huggingface": Engine("Hugging Face Marian", "run_huggingface.py", (TORCH, "transformers>=5", *READING)),
    "eole": Engine("eole", "run_eole.py", (TORCH, "eole==0.6.4", "aiohttp")),
    "joeynmt": Engine("JoeyNMT", "run_joeynmt.py", (TORCH, "joeynmt==2.3.0", "importlib_metadata", *READING)),
    "marian": Engine("Marian", "run_marian.py", ("pymarian==1.12.42",), ("fp32",)),
    "ctranslate2": Engine("CTranslate2", "run_ctranslate2.py", (TORCH, "ctranslate2>=4.5", *READING), ("fp32", "int8")),
    "peak": Engine("matrix product", "run_peak.py"),
    "parts": Engine("nmt", "run_parts.py"),
}


class Bench(NamedTuple):
    """What holds for all jobs of a run."""

    peers: Path
    threads: int
    limit: float = 3600.0
    """Seconds after which a driver is given up."""

    def run(self, name: str, job: dict[str, Any], *, kept: bool = False, processes: int = 1) -> dict[str, Any]:
        """Have an engine's driver do a job, in a process of its own; without a result, "refused" says why."""
        engine = ENGINES[name]
        python = self._python(name)
        if not python.exists():
            return {"refused": f"not installed: scripts/bench setup {name}"}
        with tempfile.TemporaryDirectory(prefix="bench-") as work:
            result, log = Path(work) / "result.json", Path(work) / "log"
            task = {**job, "threads": self.threads, "work": work, "result": str(result)}
            (Path(work) / "job.json").write_text(json.dumps(task), encoding="utf-8")
            command = [str(python), str(HERE / "drivers" / engine.driver), f"{work}/job.json"]
            if processes > 1:
                launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
                command[1:1] = launcher
            began = time.perf_counter()
            code = self._wait(command, log, kept=kept)
            _say(f"{name} {job.get('precision', '')} {job['kind']}: {time.perf_counter() - began:.0f} s")
            if result.exists():
                return dict(json.loads(result.read_text(encoding="utf-8")))
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            return {"refused": f"failed with exit code {code}: {lines[-1] if lines else 'without a word'}"}

    def _python(self, name: str) -> Path:
        return self.peers / name / "bin" / "python" if ENGINES[name].packages else Path(sys.executable)

    def _wait(self, command: list[str], log: Path, *, kept: bool) -> int:
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env=self._environment(kept=kept))
            timer = threading.Timer(self.limit, process.kill)
            timer.start()
            try:
                return process.wait()
            finally:
                timer.cancel()
                process.kill()

    def _environment(self, *, kept: bool) -> dict[str, str]:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(self.threads))
        quiet = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled", "TOKENIZERS_PARALLELISM": "false"}
        inherited = {key: value for key, value in os.environ.items() if key not in KEPT}
        return {**inherited, **threads, **quiet, **(KEPT if kept else {}), "PYTHONPATH": str(ROOT / "src")}


def setup(names: Iterable[str], peers: Path) -> int:
    """Make the environments of peers, with pip and whatever its own settings say; how many failed."""
    failed = 0
    for name in names:
        if not ENGINES[name].packages:
            continue
        _say(f"setting up {name} in {peers / name}")
        subprocess.run([sys.executable, "-m", "venv", str(peers / name)], check=True)
        pip = [str(peers / name / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        done = subprocess.run([*pip, *ENGINES[name].packages], check=False)
        if done.returncode:
            failed += 1
            _say(f"{name} could not be installed; benchmarks will say that it is missing")
    return failed


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
