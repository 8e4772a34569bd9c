"""`nmt doctor`: say what this machine has, and which features are off and why."""

import json
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from nmt import __version__
from nmt.config.tree import Config
from nmt.discovery import features
from nmt.doctor import machine
from nmt.errors import ConfigError


def run(config: Config) -> None:
    """Print the machine and the features as text, or as JSON with output=json."""
    if config.output not in ("-", "json"):
        raise ConfigError(f"output={config.output}: doctor prints text, or JSON with output=json")
    found = examine(config)
    print(json.dumps(found, indent=2) if config.output == "json" else _as_text(found))


def examine(config: Config) -> dict[str, Any]:
    """Return what this machine has, and what is off."""
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
        "features_on": [name for name, feature in features().items() if not _missing(feature.packages)],
        "features_off": _features_off(),
    }


def _features_off() -> dict[str, str]:
    """Return why features are off, wholly or in part, by name."""
    off = {}
    for name, feature in features().items():
        if missing := _missing(feature.packages):
            wanted = " ".join(f"'{feature.packages[each]}'" for each in missing)
            off[name] = f"wholly or in part: {', '.join(missing)} not installed; pip install {wanted}"
    return off


def _missing(packages: Iterable[str]) -> list[str]:
    return [each for each in packages if find_spec(each) is None]


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
        "features": f"{len(found['features_on'])} on, {len(found['features_off'])} off wholly or in part",
    }
    off = [f"  off: {name}: {reason}" for name, reason in found["features_off"].items()]
    return "\n".join([*(f"{name + ':':<12} {value}" for name, value in lines.items()), *off])


def _gib(size: float | None) -> str:
    return "unknown" if size is None else f"{size:.1f} GiB"
