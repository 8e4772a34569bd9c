"""What this machine has. Nothing here fails: what cannot be found out is an answer, too."""

import os
import platform
import shlex
import shutil
import socket
from pathlib import Path
from urllib.parse import urlsplit

from nmt.compute.cores import cpu_description, usable_cores, usable_memory

HUB = "https://huggingface.co"
"""The Hub's address, unless HF_ENDPOINT names a mirror."""
PORTS = {"http": 80, "https": 443}
HUB_SECONDS = 2.0
"""The longest time to wait for the Hub."""
GIB = 2**30


def processor() -> str:
    """Return the processor, its widest instructions, and the cores that this process may use."""
    return f"{cpu_description()}; {usable_cores()} usable cores"


def torch_build() -> str:
    """Return the version of PyTorch and of CUDA that it was built for."""
    try:
        import torch  # noqa: PLC0415 - this command also runs if it is missing or broken
    except (ImportError, OSError) as error:
        return f"cannot be imported ({_one_line(error)}): install it again"
    return f"{torch.__version__}, {f'for CUDA {torch.version.cuda}' if torch.version.cuda else 'without CUDA'}"


def gpus() -> list[str]:
    """Return the names of the GPUs that PyTorch can use."""
    try:
        import torch  # noqa: PLC0415

        names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        return names or (["Apple MPS"] if torch.backends.mps.is_available() else [])
    except (ImportError, OSError, RuntimeError):
        return []


def compiler() -> str:
    """Return the path of the C compiler; empty without one."""
    try:
        command = shlex.split(os.environ.get("CC", "")) or ["cc"]
    except ValueError:
        return ""
    return shutil.which(command[0]) or ""


def memory_gib() -> float | None:
    """Return the memory of the machine or of its container; None if the system does not tell."""
    try:
        return usable_memory() / GIB
    except (AttributeError, OSError, ValueError):
        return None


def free_disk_gib(folder: Path) -> float | None:
    """Return the free space where a folder is or would be; None if it cannot be read."""
    there = next((each for each in (folder.absolute(), *folder.absolute().parents) if each.exists()), Path.cwd())
    try:
        return shutil.disk_usage(there).free / GIB
    except OSError:
        return None


def hub() -> str:
    """Return whether the Hub of Hugging Face can be reached."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return "not asked, because HF_HUB_OFFLINE is set"
    if proxy := os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"):
        return f"not asked, because a proxy is set ({proxy.rpartition('@')[2]})"
    address = os.environ.get("HF_ENDPOINT") or HUB
    mirror = f" at {address}" if address != HUB else ""
    try:
        endpoint = urlsplit(address)
        port = endpoint.port or PORTS.get(endpoint.scheme, 443)
        socket.create_connection((endpoint.hostname or "", port), HUB_SECONDS).close()
    except (OSError, ValueError) as error:
        return f"not reachable{mirror} ({_one_line(error)}): data.source=hub needs it, or its cache"
    return f"reachable{mirror}"


def python() -> str:
    """Return the version of Python and the system."""
    return f"{platform.python_version()} on {platform.platform()}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
