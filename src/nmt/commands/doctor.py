"""`nmt doctor`: say what this machine has, and which optional packages are missing.

Nothing that it looks for fails: what cannot be found out is an answer, too.
"""

import json
import os
import platform
import shlex
import shutil
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from nmt import __version__
from nmt.compute.cores import cpu_description, usable_cores, usable_memory
from nmt.config.tree import Config
from nmt.errors import ConfigError
from nmt.packages import PACKAGES, install_command, is_installed

HUB = "https://huggingface.co"
"""The Hub's address, unless HF_ENDPOINT names a mirror."""
HUB_SECONDS = 2.0
"""The longest time to wait for the Hub."""
GIB = 2**30


def run(config: Config) -> None:
    """Print the machine and its packages as text, or as JSON with output=json."""
    if config.output not in ("-", "json"):
        raise ConfigError(f"output={config.output}: doctor prints text, or JSON with output=json")
    found = examine(config)
    print(json.dumps(found, indent=2) if config.output == "json" else _as_text(found))


def examine(config: Config) -> dict[str, Any]:
    """Return what this machine has, and which optional packages it has not."""
    torch, gpus = _torch_and_gpus()
    return {
        "nmt": __version__,
        "python": f"{platform.python_version()} on {platform.platform()}",
        "processor": f"{cpu_description()}; {usable_cores()} usable cores",
        "torch": torch,
        "gpus": gpus,
        "compiler": shutil.which((shlex.split(os.environ.get("CC", "")) or ["cc"])[0]) or "",
        "memory_gib": usable_memory() / GIB,
        "free_disk_gib": {
            str(each): _free_disk_gib(each) for each in dict.fromkeys((config.corpora_folder, config.runs_folder))
        },
        "hub": hub(),
        "packages": [name for name in PACKAGES if is_installed(name)],
        "missing_packages": {
            name: f"{each.purpose}: {install_command(each.requirement)}"
            for name, each in PACKAGES.items()
            if not is_installed(name)
        },
    }


def _torch_and_gpus() -> tuple[str, list[str]]:
    """Return the version of PyTorch and of CUDA that it was built for, and the names of the GPUs that it can use."""
    try:
        import torch  # noqa: PLC0415 - this command also runs if it is missing or broken
    except (ImportError, OSError) as error:
        return f"cannot be imported ({_one_line(error)}): install it again", []
    build = f"{torch.__version__}, {f'for CUDA {torch.version.cuda}' if torch.version.cuda else 'without CUDA'}"
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return build, names or (["Apple MPS"] if torch.backends.mps.is_available() else [])


def _free_disk_gib(folder: Path) -> float:
    """Return the free space where a folder is or would be."""
    there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    return shutil.disk_usage(there).free / GIB


def hub() -> str:
    """Return whether the Hub of Hugging Face can be reached."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return "not asked, because HF_HUB_OFFLINE is set"
    address = os.environ.get("HF_ENDPOINT") or HUB
    try:
        urlopen(address, timeout=HUB_SECONDS).close()
    except HTTPError:  # it answers
        pass
    except (OSError, ValueError) as error:
        return f"{address} is not reachable ({_one_line(error)}): data.source=hub needs it, or its cache"
    return f"{address} is reachable"


def _as_text(found: dict[str, Any]) -> str:
    lines = {
        "nmt": found["nmt"],
        "Python": found["python"],
        "processor": found["processor"],
        "PyTorch": found["torch"],
        "GPUs": ", ".join(found["gpus"]) or "none",
        "C compiler": found["compiler"] or "none: operations on the CPU are slower without one; install gcc or clang",
        "memory": f"{found['memory_gib']:.1f} GiB",
        "free disk": ", ".join(f"{free:.1f} GiB in {folder}/" for folder, free in found["free_disk_gib"].items()),
        "Hub": found["hub"],
        "packages": f"{len(found['packages'])} of {len(PACKAGES)} optional ones are installed",
    }
    missing = [f"  missing: {name}, for {reason}" for name, reason in found["missing_packages"].items()]
    return "\n".join([*(f"{name + ':':<12} {value}" for name, value in lines.items()), *missing])


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
