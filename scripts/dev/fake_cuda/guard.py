"""Compile and load guard.cpp, which registers a CUDA device without hardware.

Importing this module does not import torch, because the device must be there first.
"""

import ctypes
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("guard.cpp")
COMPILERS = ("g++", "c++", "clang++")


def find_compiler() -> str | None:
    """Return the C++ compiler of this machine, or None."""
    return next((path for name in COMPILERS if (path := shutil.which(name))), None)


def register_device() -> None:
    """Register the device for the rest of this process, and import torch, which must not have been imported before."""
    assert "torch" not in sys.modules  # torch looks for devices while it is imported
    library = ctypes.CDLL(str(_library()), mode=ctypes.RTLD_GLOBAL)
    importlib.import_module("torch")
    library.register_guard()


def _library() -> Path:
    """Return the compiled library, which is kept in the user's cache."""
    key = hashlib.sha256(SOURCE.read_bytes() + f"{importlib.metadata.version('torch')} {_torch()}".encode())
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nmt"
    library = folder / f"fake_cuda-{key.hexdigest()[:16]}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = library.with_suffix(f".{os.getpid()}")
        _compile(unfinished)
        unfinished.replace(library)
    return library


def _compile(library: Path) -> None:
    compiler = find_compiler()
    if compiler is None:
        raise SystemExit(f"there is no C++ compiler, which a fake CUDA device needs: install {' or '.join(COMPILERS)}")
    include, lib = _torch() / "include", _torch() / "lib"
    flags = ["-std=c++20", "-shared", "-fPIC", f"-I{include}", f"-L{lib}", f"-Wl,-rpath,{lib}"]
    command = [compiler, *flags, str(SOURCE), "-lc10", "-ltorch_cpu", "-o", str(library)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise SystemExit(f"{compiler} cannot compile {SOURCE}:\n{result.stderr}")


def _torch() -> Path:
    """Return the folder of the torch package, without importing it."""
    specification = importlib.util.find_spec("torch")
    assert specification
    assert specification.origin
    return Path(specification.origin).parent
