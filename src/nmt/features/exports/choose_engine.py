"""engine=auto: translate in int8 if that is faster and about as good: with an export, or with the model itself."""

import math
from dataclasses import replace
from importlib.util import find_spec
from typing import NamedTuple

from nmt.compute.machine import Machine
from nmt.config.keys import with_values
from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.features.exports.first_use import (
    compare_on_first_use,
    folder_of_first_use,
    is_refused,
    is_wanted,
    make_on_first_use,
    one_at_a_time,
    say,
)
from nmt.features.exports.record import EXPORT_RECORD, VerificationRecord, read_export_record
from nmt.features.exports.settings import export_folder
from nmt.runs.checkpoint_files import read_meta
from nmt.runs.checkpoints import resolve
from nmt.runs.layout import WEIGHTS

INT8 = {"engine": "ctranslate2", "export.target": "ctranslate2", "export.quantization": "int8"}
"""The settings that use an int8 export."""
BETTER_MODEL = "translating with the model, which is better or as fast"
MAX_BLEU_LOSS = 0.2
"""How many points of BLEU an int8 export may lose and still be used unasked."""


class Comparison(NamedTuple):
    """An int8 export of the weights in question."""

    config: Config
    """The settings that use it."""
    verified: VerificationRecord
    """How it compares with the model."""


def fast_export(config: Config, machine: Machine) -> Config | None:
    """Return the settings that use an int8 export, and say so on standard error; None if torch translates.

    If there is none of these weights yet, it is made.
    """
    if machine.device.type != "cpu" or not _searches_alike(config) or find_spec("ctranslate2") is None:
        return None
    weights = _checksum(config)
    by_user = with_values(config, INT8)
    by_first_use = with_values(config, INT8 | {"export.folder": str(folder_of_first_use(config))})
    found = _compared(by_user, weights) or _whole(by_first_use, weights) or _made(by_first_use, weights, machine)
    if found is None or not _is_better(found.verified):
        return None
    say(f"translating with the int8 export in {export_folder(found.config)} ({found.verified.summary}); "
        "engine=torch for the model")  # fmt: skip
    return found.config


def rounded_model(config: Config, machine: Machine) -> Config | None:
    """Return the settings that translate with the model in int8, and say so on standard error; None if torch does."""
    if machine.device.type != "cpu" or config.decoding.ensemble:
        return None
    verified, is_new = compare_on_first_use(config, _checksum(config), machine)
    if verified is None:
        return None
    if not _is_better(verified):
        if is_new:
            say(f"{BETTER_MODEL} ({verified.summary})")
        return None
    say(f"translating in int8 ({verified.summary}); engine=torch for the model as it is")
    return replace(config, engine="int8")


def _checksum(config: Config) -> str:
    """Return the checksum of the weights that the settings name."""
    return read_meta(resolve(config.run_folder, config.checkpoint)).files[WEIGHTS]


def _searches_alike(config: Config) -> bool:
    """Return whether the settings ask only for what both engines do alike."""
    decoding = config.decoding
    return decoding.strategy == "beam" and not (decoding.torch_only or config.translate.prefix)


def _compared(config: Config, weights: str) -> Comparison | None:
    """Return the export that the settings name; None if there is none of weights with this checksum."""
    if not (export_folder(config) / EXPORT_RECORD).is_file():
        return None
    record = read_export_record(export_folder(config))
    exported = record.target, record.quantization, record.checkpoint.sha256
    return Comparison(config, record.verified) if exported == ("ctranslate2", "int8", weights) else None


def _whole(config: Config, weights: str) -> Comparison | None:
    """Return the export of the first use, for which nobody has asked; None if it is unwanted, or damaged.

    A damaged one is made again.
    """
    if not is_wanted(config):
        return None
    folder = export_folder(config)
    try:
        if found := _compared(config, weights):
            read_export_record(folder).verify(folder)
    except UserError:
        return None
    return found


def _made(config: Config, weights: str, machine: Machine) -> Comparison | None:
    """Make the export that the settings name, and say if it will not be used; None if it cannot be made."""
    if is_refused(config, weights):
        return None
    with one_at_a_time(config):
        if made := _whole(config, weights):  # by the process that this one has waited for
            return made
        if not make_on_first_use(config, weights, machine):
            return None
    made = _compared(config, weights)
    if made and not _is_better(made.verified):
        say(f"{BETTER_MODEL} ({made.verified.summary})")
    return made


def _is_better(verified: VerificationRecord) -> bool:
    """Return whether an export is faster than the model and about as good."""
    return is_as_good(verified) and (verified.speedup or 0) > 1


def is_as_good(verified: VerificationRecord) -> bool:
    """Return whether the export lost at most `MAX_BLEU_LOSS` where it was compared with the model."""
    quality = verified.quality or {}
    return quality.get("export_bleu", -math.inf) >= quality.get("model_bleu", math.inf) - MAX_BLEU_LOSS
