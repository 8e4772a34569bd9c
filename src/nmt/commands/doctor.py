"""`nmt doctor`: say what this machine has, and which optional packages are missing.

Nothing that it looks for fails: what cannot be found out is an answer, too.
"""

import os
import platform
import shlex
import shutil
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from nmt import __version__
from nmt.compute.cores import cpu_description, usable_cores, usable_memory
from nmt.config.tree import Config
from nmt.packages import PACKAGES, install_command, is_installed

HUB = "https://huggingface.co"
"""The Hub's address, unless HF_ENDPOINT names a mirror."""
HUB_SECONDS = 2.0
"""The longest time to wait for the Hub."""
GIB = 2**30


def run(config: Config) -> None:
    """Print what this machine has, and which optional packages it has not."""
    torch, gpus = _torch_and_gpus()
    folders = dict.fromkeys((config.corpora_folder, config.runs_folder))
    missing = {name: package for name, package in PACKAGES.items() if not is_installed(name)}
    for name, found in {
        "nmt": __version__,
        "Python": f"{platform.python_version()} on {platform.platform()}",
        "processor": f"{cpu_description()}; {usable_cores()} usable cores",
        "PyTorch": torch,
        "GPUs": gpus or "none",
        "C compiler": _compiler() or "none: operations on the CPU are slower without one; install gcc or clang",
        "memory": f"{usable_memory() / GIB:.1f} GiB",
        "free disk": ", ".join(f"{_free_disk(each) / GIB:.1f} GiB in {each}/" for each in folders),
        "Hub": hub(),
        "packages": f"{len(PACKAGES) - len(missing)} of {len(PACKAGES)} optional ones are installed",
    }.items():
        print(f"{name + ':':<12} {found}")
    for name, package in missing.items():
        print(f"  missing: {name}, for {package.purpose}: {install_command(package.requirement)}")


def _compiler() -> str | None:
    """Return the path of the C compiler that CC names, which may have options."""
    try:
        return shutil.which((shlex.split(os.environ.get("CC", "")) or ["cc"])[0])
    except ValueError as error:
        return f"unknown, because CC cannot be read ({error}): correct it"


def _torch_and_gpus() -> tuple[str, str]:
    """Return the version of PyTorch and of CUDA that it was built for, and the names of the GPUs that it can use."""
    try:
        import torch  # noqa: PLC0415 - this command also runs if it is missing or broken
    except (ImportError, OSError) as error:
        return f"cannot be imported ({' '.join(str(error).split())}): install it again", ""
    build = f"{torch.__version__}, {f'for CUDA {torch.version.cuda}' if torch.version.cuda else 'without CUDA'}"
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return build, ", ".join(names) or ("Apple MPS" if torch.backends.mps.is_available() else "")


def _free_disk(folder: Path) -> int:
    """Return the free bytes where a folder is or would be."""
    there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    return shutil.disk_usage(there).free


def hub() -> str:
    """Return whether the Hub of Hugging Face can be reached."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return "not asked, because HF_HUB_OFFLINE is set"
    address = os.environ.get("HF_ENDPOINT") or HUB
    try:
        urlopen(address, timeout=HUB_SECONDS).close()
    except HTTPError:  # it answers
        pass
    except (OSError, ValueError, HTTPException) as error:
        return f"{address} is not reachable ({error}): data.source=hub needs it, or its cache"
    return f"{address} is reachable"
