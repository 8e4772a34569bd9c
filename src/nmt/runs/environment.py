"""Describe what a run was trained with: everything that could make another run differ, and nothing secret."""

import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from nmt import __version__
from nmt.compute.cores import cpu_model, usable_cores
from nmt.config.tree import Config
from nmt.data.manifest import MANIFEST, read_manifest
from nmt.errors import UserError
from nmt.launched import launched_processes
from nmt.model.backends.chosen import backend
from nmt.runs.checkpoint import CheckpointRecord
from nmt.storage.files import checksum, read_json, record_of

PACKAGES = ("torch", "numpy", "sentencepiece", "sacrebleu", "datasets", "safetensors", "hydra-core", "wandb")


@dataclass(frozen=True, slots=True)
class GitState:
    """The commit of the code, and whether files differ from it; None if git does not say."""

    commit: str | None
    dirty: bool | None


@dataclass(frozen=True, slots=True)
class DataState:
    """The checksum of the manifest of the prepared data, and the checksums that it lists."""

    manifest: str
    checksums: Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The content of environment.json."""

    nmt: str = ""
    git: GitState | None = None
    """None outside a repository that tracks the code."""
    command: list[str] = field(default_factory=list)
    seed: int | None = None
    precision: str = ""
    python: str = ""
    packages: Mapping[str, str | None] = field(default_factory=dict)
    """The version of each package; None if it is not installed."""
    cuda: str | None = None
    cudnn: int | None = None
    platform: str = ""
    cpu: str = ""
    cpu_capability: str = ""
    cores: int | None = None
    threads: int = 1
    c_operations: bool = False
    """Whether training used the operations in C."""
    devices: list[str] = field(default_factory=list)
    """Names of the GPUs of the machine."""
    processes: int = 1
    data: DataState | None = None
    """None without prepared data."""
    origin: CheckpointRecord | None = None
    """The model that the run began from; None if it began with random weights."""
    earlier: list["Environment"] = field(default_factory=list)
    """What was different before the run was resumed, the first first: other code or another machine."""

    def after(self, before: "Environment") -> "Environment":
        """Return this environment of a run that is resumed, with the one before if that differs."""
        last = replace(before, earlier=[])
        same = replace(last, command=self.command) == self
        return replace(self, earlier=[*before.earlier, *([] if same else [last])])


def read_environment(file: Path) -> Environment:
    """Read an environment.json; fields that this version does not know are ignored."""
    try:
        return record_of(Environment, read_json(file))
    except ValueError as error:
        raise UserError(f"{file} does not describe the machine of a run: delete it") from error


def environment(
    config: Config, corpus: Path, origin: CheckpointRecord | None = None, precision: str = ""
) -> Environment:
    """Return the code, the machine and the data of a run, and the model that it began from.

    `corpus` is the folder of the prepared data, and `precision` the one that the run computes in, if that is known.
    """
    return Environment(
        nmt=__version__,
        git=_git_state(Path(__file__).parent),
        command=sys.argv,
        seed=config.seed,
        precision=precision or config.runtime.precision,
        python=platform.python_version(),
        packages={package: _version(package) for package in PACKAGES},
        cuda=torch.version.cuda,
        cudnn=torch.backends.cudnn.version() if torch.cuda.is_available() else None,
        platform=platform.platform(),
        cpu=cpu_model(),
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
        cores=usable_cores(),
        threads=torch.get_num_threads(),
        c_operations=backend().name == "cpu",
        devices=_gpus(),
        processes=launched_processes(),
        data=_data_state(corpus),
        origin=origin,
    )


def _gpus() -> list[str]:
    """Return the names of the GPUs of this machine."""
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return names or (["Apple MPS"] if torch.backends.mps.is_available() else [])


def _git_state(folder: Path) -> GitState | None:
    """Return the commit of the code and whether it has changes; None outside a repository that tracks it."""
    if _git(folder, "ls-files", "--error-unmatch", "environment.py") is None:
        return None
    commit, changes = _git(folder, "rev-parse", "HEAD"), _git(folder, "status", "--porcelain")
    return GitState(commit, dirty=None if changes is None else bool(changes))


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(folder), *arguments],  # a lock would outlive a killed run
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _data_state(corpus: Path) -> DataState | None:
    """Return the checksum of the manifest, and the checksums of files that it lists; None without a manifest."""
    if not (corpus / MANIFEST).exists():
        return None
    tasks = read_manifest(corpus).tasks.values()
    return DataState(
        checksum(corpus / MANIFEST), {name: found for task in tasks for name, found in task.outputs.items()}
    )
