"""Make the int8 export of a checkpoint when it first translates on a CPU, and never try twice."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nmt.compute.machine import Machine
from nmt.config.keys import with_values
from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.features.exports.export_checkpoint import export_checkpoint
from nmt.features.exports.settings import exports_of
from nmt.storage.files import read_json, write_json

FOLDER = "first-use-int8"
"""The folder of this export among those of the run; an export that the user makes has another one."""
REFUSED = "first-use-int8.json"
"""Says for which weights no export could be made, and why."""


def folder_of_first_use(config: Config) -> Path:
    """Return the folder of the export that the first use makes."""
    return exports_of(config) / FOLDER


def make_on_first_use(config: Config, weights: str, machine: Machine) -> bool:
    """Make the export that the settings name, of weights with this checksum; return whether there is one now."""
    if _was_refused(config, weights) or not _has_development_set(config):
        return False
    say("making an int8 export once, because it usually translates faster (export.on_first_use=false for the model)")
    try:
        export_checkpoint(with_values(config, {"input": "-"}), machine.precision)
    except UserError as error:
        say(f"translating with the model: {error}")
        with suppress(UserError):  # of a folder that may only be read
            write_json(exports_of(config) / REFUSED, {"weights": weights, "reason": str(error)})
        return False
    return True


def _was_refused(config: Config, weights: str) -> bool:
    file = exports_of(config) / REFUSED
    content: Mapping[str, Any] = read_json(file) if file.is_file() else {}
    return content.get("weights") == weights


def _has_development_set(config: Config) -> bool:
    """Return whether there are references, without which nobody knows what rounding costs."""
    languages = config.data.source_lang, config.data.target_lang
    return all((config.data_folder / f"valid.{language}").is_file() for language in languages)


def say(line: str) -> None:
    """Write a line to standard error."""
    tqdm.write(line, file=sys.stderr)
