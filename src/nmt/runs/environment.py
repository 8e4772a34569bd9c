"""Describe what a run was trained with: everything that could make another run differ, and nothing secret."""

import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from nmt import __version__
from nmt.compute.cores import usable_cores
from nmt.config.schema import Config
from nmt.storage.files import checksum, read_json

PACKAGES = ("torch", "numpy", "sentencepiece", "sacrebleu", "datasets", "safetensors", "hydra-core", "wandb")


def environment(config: Config, data_manifest: Path) -> dict[str, object]:
    """Return the code, the machine and the data of a run, for its environment.json."""
    return {
        "nmt": __version__,
        "git": _git_state(Path(__file__).parent),
        "command": sys.argv,
        "seed": config.seed,
        "precision": config.runtime.precision,
        "python": platform.python_version(),
        "packages": {package: _version(package) for package in PACKAGES},
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.cuda.is_available() else None,
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cores": usable_cores(),
        "threads": torch.get_num_threads(),
        "devices": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "data": _data_state(data_manifest),
    }


def _git_state(folder: Path) -> dict[str, object] | None:
    """Return the commit of the code and whether it has changes; None outside a repository that tracks it."""
    if _git(folder, "ls-files", "--error-unmatch", "environment.py") is None:
        return None
    commit, changes = _git(folder, "rev-parse", "HEAD"), _git(folder, "status", "--porcelain")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def _data_state(manifest: Path) -> dict[str, object] | None:
    """Return the checksum of the manifest, and the checksums of files that it lists; None without a manifest."""
    if not manifest.exists():
        return None
    content = read_json(manifest)
    checksums = content.get("checksums") if isinstance(content, dict) else None
    return {"manifest": checksum(manifest), "checksums": checksums}
