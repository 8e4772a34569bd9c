"""Compile the operations in C for this processor, once: the result stays in the user's cache."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from ctypes import CDLL
from hashlib import sha256
from pathlib import Path

import torch

from nmt.compute.cores import cpu_features
from nmt.storage.files import sync

SOURCES, HEADERS = (sorted(Path(__file__).parent.glob(f"*.{kind}")) for kind in "ch")
OPTIONS: tuple[str, ...] = ("-O3", "-fno-strict-aliasing", "-shared", "-fPIC", "-pthread", "-Wno-psabi")
FOR_THIS_PROCESSOR: tuple[tuple[str, ...], ...] = (("-march=native",), ("-mcpu=native",), ())
"""Options in the order in which they are tried: not every compiler has the first one on every processor."""


def compiled(definitions: Sequence[str]) -> CDLL | None:
    """Return the operations, compiled with these definitions (`-DFLOAT32`); None without a working compiler.

    The compiler is `cc`, or what the environment variable CC names, which may have options.
    """
    try:
        compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
        command = [*compiler, *OPTIONS, *_like_pytorch(), *definitions]
        path = cache_folder() / f"operations-{_identity(compiler, command)}.so"
        with suppress(OSError):  # missing or damaged
            return CDLL(str(path))
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:  # other processes never see half a file
            file = _compile(command, Path(folder))
            sync(file)
            file.replace(path)
        return CDLL(str(path))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def cache_folder() -> Path:
    """Return the folder for this package in the user's cache, or a temporary one if nothing can be written there."""
    with suppress(OSError, RuntimeError):  # RuntimeError: this user has no home
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "nmt"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="nmt-"))


def _like_pytorch() -> list[str]:
    """Leave out AVX-512 and VNNI if PyTorch does: the processor lacks it, or ATEN_CPU_CAPABILITY=avx2 says so."""
    return ["-mno-avx512f", "-DWITHOUT_VNNI"] if torch.backends.cpu.get_cpu_capability() == "AVX2" else []


def _identity(compiler: Sequence[str], command: Sequence[str]) -> str:
    """Return a name for what the compiler would write: it depends on sources, command, compiler and processor."""
    version = subprocess.run([*compiler, "--version"], check=True, capture_output=True).stdout
    content = [file.read_bytes() for file in (*SOURCES, *HEADERS)]
    parts = [*content, version, "\0".join(command).encode(), cpu_features().encode()]
    return sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()[:16]


def _compile(command: Sequence[str], folder: Path) -> Path:
    """Compile for this processor; raise a CalledProcessError if the compiler cannot."""
    file = folder / "operations.so"
    for options in FOR_THIS_PROCESSOR:
        words = [*command, *options, "-o", str(file), *map(str, SOURCES)]
        done = subprocess.run(words, check=options == (), capture_output=True)
        if done.returncode == 0:
            break
    return file
