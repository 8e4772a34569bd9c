"""Try int8 when a checkpoint first translates on a CPU, as an export or as it is, and never twice."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nmt.compute.machine import Machine
from nmt.config.keys import with_values
from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.features.exports.export_checkpoint import export_checkpoint
from nmt.features.exports.int8_engine import compare_with_model, has_operations
from nmt.features.exports.record import VerificationRecord
from nmt.features.exports.settings import ExportConfig, exports_of
from nmt.storage.files import read_json, write_json
from nmt.storage.lock import exclusive_folder

FOLDER = "first-use-int8"
"""The folder of this export among those of the run; an export that the user makes has another one."""
REFUSED = "first-use-int8.json"
"""Says for which weights no export could be made, and why."""
COMPARED = "own-int8.json"
"""Says how the model in int8 compares with itself, or why this could not be found out."""
ONCE = "because it usually translates faster (export.on_first_use=false for the model)"


def folder_of_first_use(config: Config) -> Path:
    """Return the folder of the export that the first use makes."""
    return exports_of(config) / FOLDER


def make_on_first_use(config: Config, weights: str, machine: Machine) -> bool:
    """Make the export that the settings name, of weights with this checksum; return whether there is one now."""
    if is_refused(config, weights):
        return False
    say(f"making an int8 export once, {ONCE}")
    try:
        export_checkpoint(with_values(config, {"input": "-"}), machine.precision)
    except UserError as error:
        _refuse(config, REFUSED, weights, error)
        return False
    return True


def compare_on_first_use(config: Config, weights: str, machine: Machine) -> tuple[VerificationRecord | None, bool]:
    """Return how the model in int8 compares with itself, and whether it was just compared.

    The first is None if nobody knows, the user does not want int8, or this machine has no operations for it.
    """
    if not (is_wanted(config) and has_operations(config)):
        return None, False
    if found := _remembered(config, COMPARED, weights):
        return _compared(found), False
    if not may_try(config):
        return None, False
    with one_at_a_time(config):
        if found := _remembered(config, COMPARED, weights):  # by the process that this one has waited for
            return _compared(found), False
        return _compare(config, weights, machine)


def _compared(found: Mapping[str, Any]) -> VerificationRecord | None:
    return VerificationRecord.from_json(found["verified"]) if "verified" in found else None


def _compare(config: Config, weights: str, machine: Machine) -> tuple[VerificationRecord | None, bool]:
    say(f"comparing the model in int8 with itself once, {ONCE}")
    settings = with_values(config, {"input": "-", "export.target": "ctranslate2", "export.quantization": "int8"})
    try:
        compared = compare_with_model(settings, machine.precision)
    except UserError as error:
        _refuse(config, COMPARED, weights, error)
        return None, False
    _remember(config, COMPARED, {"weights": weights, "verified": compared.to_json()})
    return compared, True


def is_refused(config: Config, weights: str) -> bool:
    """Return whether weights with this checksum get no export: it failed before, or may not be tried."""
    return bool(_remembered(config, REFUSED, weights)) or not may_try(config)


@contextmanager
def one_at_a_time(config: Config) -> Iterator[None]:
    """Let one process make what the first use makes, while others wait; in a folder that may only be read, all do."""
    taken = "is in use: waiting for another process, which makes or compares the model in int8"
    with ExitStack() as stack:
        with suppress(UserError):
            stack.enter_context(exclusive_folder(exports_of(config), taken=taken, setting="paths.outputs", wait=say))
        yield


def is_wanted(config: Config) -> bool:
    """Return whether the user allows int8 for which nobody has asked."""
    return config.of(ExportConfig).on_first_use


def may_try(config: Config) -> bool:
    """Return whether the user allows it, and there are references, without which nobody knows what rounding costs."""
    languages = config.data.source_lang, config.data.target_lang
    has_references = all((config.data_folder / f"valid.{language}").is_file() for language in languages)
    return is_wanted(config) and has_references


def _refuse(config: Config, name: str, weights: str, error: UserError) -> None:
    say(f"translating with the model: {error}")
    _remember(config, name, {"weights": weights, "reason": str(error)})


def _remember(config: Config, name: str, content: Mapping[str, Any]) -> None:
    with suppress(UserError):  # of a folder that may only be read
        write_json(exports_of(config) / name, content)


def _remembered(config: Config, name: str, weights: str) -> Mapping[str, Any]:
    """Return what was found out about these weights; empty if nothing."""
    file = exports_of(config) / name
    content: Mapping[str, Any] = read_json(file) if file.is_file() else {}
    return content if content.get("weights") == weights else {}


def say(line: str) -> None:
    """Write a line to standard error."""
    tqdm.write(line, file=sys.stderr)
