"""The file with the settings that tuning chose: for which machine, model and batch, and what was measured."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import Any

import torch
import yaml

from nmt import __version__
from nmt.compute.cores import usable_cores
from nmt.compute.machine import choose_device, device_name
from nmt.config.keys import with_values
from nmt.config.schema import Config
from nmt.errors import ConfigError, UserError
from nmt.measuring.choices import TUNABLE
from nmt.measuring.search import Outcome, Value
from nmt.storage.files import write_text

MAX_BYTES, MAX_DEPTH = 256 * 1024, 4
"""The largest file that is read, and its deepest nesting: tuning writes a few kilobytes, nested three levels deep."""
HEADER = (
    "# Written by `nmt tune`. Training takes these settings if its own leave them open, and only for this machine,\n"
    "# model and batch. Delete the file, or set runtime.tuned=off, to train without them.\n"
)

Fingerprint = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class Tuned:
    """The settings that tuning chose."""

    fingerprint: Mapping[str, object]
    settings: dict[str, Value]
    text: str
    """The whole file."""


def fingerprint(config: Config, devices: int) -> Fingerprint:
    """Return what the speed of a run depends on: machine, versions, model, batch, and a precision that is given."""
    device = choose_device(config.runtime.device)
    machine: Fingerprint = {
        "type": device.type,
        "device": device_name(device),
        "cores": usable_cores() if device.type == "cpu" else 0,
        "devices": devices,
        "torch": str(torch.__version__),
        "precision": config.runtime.precision,
        "tokenizer.vocab_size": config.tokenizer.vocab_size,
        "training.batch_tokens": config.training.batch_tokens,
    }
    return machine | {f"model.{name}": value for name, value in asdict(config.model).items()}


def tuned_file(config: Config, found: Fingerprint) -> Path:
    """Return the path of the file for a machine, model and batch, in the folder of all runs."""
    name = "-".join("".join(char if char.isalnum() else " " for char in str(found["device"])).lower().split())
    key = sha256(dumps(found, sort_keys=True).encode()).hexdigest()[:8]
    return config.runs_folder / "tuned" / f"{name[:40]}-{key}.yaml"


def write_tuned(path: Path, found: Fingerprint, outcome: Outcome, batch_tokens: int) -> None:
    """Write what tuning chose and measured, with global batches of this many tokens."""
    content = {
        "nmt": __version__,
        "fingerprint": found,
        "settings": outcome.settings,
        "measured_with_batch_tokens": batch_tokens,
        "table": [asdict(row) for row in outcome.table],
    }
    write_text(path, HEADER + yaml.safe_dump(content, sort_keys=False, width=120))


def read_tuned(path: Path, config: Config) -> Tuned:
    """Return what a file says; refuse anything that tuning would not have written for a run with these settings."""
    text = _text(path)
    match _plain(text, path):
        case {"fingerprint": dict(found), "settings": dict(settings)}:
            pass
        case _:
            raise _damaged(path, "it has no fingerprint or no settings")
    for setting, value in settings.items():
        if setting not in TUNABLE:
            raise _damaged(path, f"{str(setting)[:60]!r} is not a setting that is tuned")
        if type(value) is not TUNABLE[setting].type:
            raise _damaged(path, f"{setting} has a value of another type")
    try:
        with_values(config, settings)
    except ConfigError as error:
        raise _damaged(path, str(error)) from error
    return Tuned(found, settings, text)


def first_difference(found: Mapping[str, object], expected: Mapping[str, object]) -> str:
    """Return in words how two fingerprints differ; empty if they are the same."""
    for key in [*expected, *found]:
        if found.get(key) != expected.get(key):
            return f"{key} was {str(found.get(key))[:60]} and is {expected.get(key)}"
    return ""


def _plain(text: str, path: Path) -> Any:
    """Return YAML as plain values; refuse great depth, and aliases, a few of which can expand beyond all memory."""
    try:
        depth = 0
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > MAX_DEPTH:
                raise _damaged(path, "it contains an alias (*name) or is nested too deeply")
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _damaged(path, " ".join(str(error).split())[:100]) from error


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise _damaged(path, "it is too large")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, reason: str) -> UserError:
    return UserError(f"{path} cannot be used as tuned settings: {' '.join(reason.split())}; run `nmt tune` again")
