"""Describe what a run was trained with: what could make another run differ, and nothing secret."""

import platform
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path

import torch

from nmt import __version__
from nmt.compute.cores import cpu_model
from nmt.config.tree import Config
from nmt.data.manifest import MANIFEST, read_manifest
from nmt.errors import UserError
from nmt.launched import launched_processes
from nmt.runs.checkpoint import CheckpointRecord
from nmt.storage.files import checksum, read_json, record_of

PACKAGES = ("torch", "numpy", "sentencepiece", "sacrebleu", "datasets", "safetensors", "hydra-core", "wandb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The part of environment.json that is read again."""

    cpu: str = ""
    threads: int = 1
    devices: list[str] = field(default_factory=list)
    """Names of the GPUs of the machine."""
    precision: str = ""
    origin: CheckpointRecord | None = None
    """The model that the run began from; None if it began with random weights."""


def read_environment(file: Path) -> Environment:
    """Read an environment.json."""
    try:
        return record_of(Environment, read_json(file))
    except ValueError as error:
        raise UserError(f"{file} does not describe the machine of a run: delete it") from error


def environment(
    config: Config, corpus: Path | None, origin: CheckpointRecord | None, precision: str
) -> dict[str, object]:
    """Return the code, the machine and the prepared data of a run, and the model that it began from, as JSON."""
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    machine = Environment(
        cpu=cpu_model(),
        threads=torch.get_num_threads(),
        devices=gpus or (["Apple MPS"] if torch.backends.mps.is_available() else []),
        precision=precision,
        origin=origin,
    )
    return {
        "nmt": __version__,
        "commit": _commit(Path(__file__).parents[3]),
        "command": sys.argv,
        "seed": config.seed,
        "python": platform.python_version(),
        "packages": {package: version(package) for package in PACKAGES},
        "cuda": torch.version.cuda,
        "platform": platform.platform(),
        "processes": launched_processes(),
        "data": _data(corpus) if corpus else None,
        **asdict(machine),
    }


def _commit(repository: Path) -> str | None:
    """Return the commit of the code, with `-dirty` after it if files differ; None outside of a clone."""
    if not (repository / ".git").exists():
        return None
    describe = ("describe", "--always", "--abbrev=40", "--exclude=*", "--dirty")
    command = ("git", "--no-optional-locks", "-C", str(repository), *describe)  # a lock would outlive a killed run
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def _data(corpus: Path) -> dict[str, object] | None:
    """Return the checksum of the manifest, and the checksums of files that it lists; None without a manifest."""
    if not (corpus / MANIFEST).exists():
        return None
    tasks = read_manifest(corpus).tasks.values()
    files = {name: found for task in tasks for name, found in task.outputs.items()}
    return {"manifest": checksum(corpus / MANIFEST), "checksums": files}
