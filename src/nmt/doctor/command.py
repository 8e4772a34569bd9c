"""`nmt doctor`: say what this machine has, and which optional packages are missing."""

import json
from typing import Any

from nmt import __version__
from nmt.config.tree import Config
from nmt.doctor import machine
from nmt.errors import ConfigError
from nmt.packages import PACKAGES, install_command, is_installed


def run(config: Config) -> None:
    """Print the machine and its packages as text, or as JSON with output=json."""
    if config.output not in ("-", "json"):
        raise ConfigError(f"output={config.output}: doctor prints text, or JSON with output=json")
    found = examine(config)
    print(json.dumps(found, indent=2) if config.output == "json" else _as_text(found))


def examine(config: Config) -> dict[str, Any]:
    """Return what this machine has, and which optional packages it has not."""
    return {
        "nmt": __version__,
        "python": machine.python(),
        "processor": machine.processor(),
        "torch": machine.torch_build(),
        "gpus": machine.gpus(),
        "compiler": machine.compiler(),
        "memory_gib": machine.memory_gib(),
        "free_disk_gib": {
            str(each): machine.free_disk_gib(each)
            for each in dict.fromkeys((config.corpora_folder, config.runs_folder))
        },
        "hub": machine.hub(),
        "packages": [name for name in PACKAGES if is_installed(name)],
        "missing_packages": {
            name: f"{each.purpose}: {install_command(each.requirement)}"
            for name, each in PACKAGES.items()
            if not is_installed(name)
        },
    }


def _as_text(found: dict[str, Any]) -> str:
    disk = ", ".join(f"{_gib(free)} in {folder}/" for folder, free in found["free_disk_gib"].items())
    lines = {
        "nmt": found["nmt"],
        "Python": found["python"],
        "processor": found["processor"],
        "PyTorch": found["torch"],
        "GPUs": ", ".join(found["gpus"]) or "none",
        "C compiler": found["compiler"] or "none: operations on the CPU are slower without one; install gcc or clang",
        "memory": _gib(found["memory_gib"]),
        "free disk": disk,
        "Hub": found["hub"],
        "packages": f"{len(found['packages'])} of {len(PACKAGES)} optional ones are installed",
    }
    missing = [f"  missing: {name}, for {reason}" for name, reason in found["missing_packages"].items()]
    return "\n".join([*(f"{name + ':':<12} {value}" for name, value in lines.items()), *missing])


def _gib(size: float | None) -> str:
    return "unknown" if size is None else f"{size:.1f} GiB"
