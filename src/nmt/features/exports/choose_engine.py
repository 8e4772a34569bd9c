"""engine=auto: translate with the int8 export of a model where that is faster and about as good."""

import math
import sys
from importlib.util import find_spec

import torch
from tqdm import tqdm

from nmt.config.keys import with_values
from nmt.config.schema import Config
from nmt.features.exports.record import EXPORT_RECORD, VerificationRecord, read_export_record
from nmt.features.exports.settings import export_folder
from nmt.runs.checkpoint_files import read_meta
from nmt.runs.checkpoints import resolve
from nmt.runs.layout import WEIGHTS

INT8 = {"engine": "ctranslate2", "export.target": "ctranslate2", "export.quantization": "int8"}
"""The settings that use an int8 export."""
MAX_BLEU_LOSS = 0.2
"""How many points of BLEU an int8 export may lose and still be used unasked."""


def fast_export(config: Config, device: torch.device) -> Config | None:
    """Return the settings that use the int8 export, and say so on standard error; None if torch is to translate."""
    if device.type != "cpu" or not _searches_alike(config):
        return None
    int8 = with_values(config, INT8)
    verified = _verified(int8)
    if verified is None or not _is_better(verified):
        return None
    tqdm.write(
        f"translating with the int8 export in {export_folder(int8)} ({verified.summary}); engine=torch for the model",
        file=sys.stderr,
    )
    return int8


def _searches_alike(config: Config) -> bool:
    """Return whether the settings ask only for what both engines do alike."""
    decoding = config.decoding
    return decoding.strategy == "beam" and not (decoding.torch_only or config.translate.prefix)


def _verified(config: Config) -> VerificationRecord | None:
    """Return how the int8 export of the checkpoint compares with the model; None if there is no export to use."""
    if find_spec("ctranslate2") is None or not (export_folder(config) / EXPORT_RECORD).is_file():
        return None
    record = read_export_record(export_folder(config))
    weights = read_meta(resolve(config.run_folder, config.checkpoint)).files[WEIGHTS]
    exported = record.target, record.quantization, record.checkpoint.sha256
    return record.verified if exported == ("ctranslate2", "int8", weights) else None


def _is_better(verified: VerificationRecord) -> bool:
    """Return whether an export is faster than the model and about as good."""
    return is_as_good(verified) and (verified.speedup or 0) > 1


def is_as_good(verified: VerificationRecord) -> bool:
    """Return whether the export lost at most `MAX_BLEU_LOSS` where it was compared with the model."""
    quality = verified.quality or {}
    return quality.get("export_bleu", -math.inf) >= quality.get("model_bleu", math.inf) - MAX_BLEU_LOSS
