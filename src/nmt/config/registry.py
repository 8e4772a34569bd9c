"""The names that settings such as `model.positions` can take, and where the code behind each name is.

A line names a module and an attribute, which are imported when they are first used. So settings are checked, and their
help is written, without importing torch. A value with a colon, such as `training.optimizer=mine:Lion`, names code of
the user; only the command line and the user's own `conf` may give one.
"""

import re
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from nmt.errors import ConfigError

CHOICES: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "model.architecture": {
        "transformer": ("nmt.model.transformer:Transformer", "the paper's encoder and decoder"),
        "decoder_only": ("nmt.model.decoder_only:DecoderOnly", "source and translation as one causal stream"),
    },
    "model.positions": {
        "sinusoidal": ("nmt.model.positions:Sinusoidal", "the paper's"),
        "learned": ("nmt.model.positions:Learned", "Table 3, row E"),
        "relative": ("nmt.model.positions:Relative", "learned vectors of clipped distances"),
        "rotary": ("nmt.model.positions:Rotary", "rotated queries and keys"),
        "alibi": ("nmt.model.positions:Alibi", "scores fall linearly with distance"),
    },
    "model.norm": {
        "layer": ("nmt.model.modules:LayerNorm", "the paper's LayerNorm"),
        "rms": ("nmt.model.modules:RMSNorm", "RMSNorm"),
    },
    "model.activation": {
        "relu": ("nmt.model.activations:RELU", "the paper's"),
        "gelu": ("nmt.model.activations:GELU", "smooth"),
        "swish": ("nmt.model.activations:SWISH", "smooth, in most of Marian's models"),
        "swiglu": ("nmt.model.activations:SWIGLU", "gated"),
    },
    "training.optimizer": {
        "adam": ("nmt.training.optimizer:adam", "the paper's"),
        "muon": ("nmt.training.muon:muon", "Muon for the matrices of the layers, Adam for the rest"),
    },
    "training.schedule": {
        "inverse_sqrt": ("nmt.training.schedule:inverse_sqrt", "the paper's"),
        "cosine": ("nmt.training.schedule:cosine", "half a wave to zero"),
        "linear": ("nmt.training.schedule:linear", "a straight line to zero"),
        "constant": ("nmt.training.schedule:constant", "stays at the peak"),
    },
    "data.source": {
        "hub": ("nmt.data.sources.hub:SOURCE", "Hugging Face"),
        "files": ("nmt.data.sources.files:SOURCE", "your own"),
        "multi30k": ("nmt.data.sources.multi30k:SOURCE", "fetched from its authors' repository"),
        "demo": ("nmt.demo.source:SOURCE", "the embedded grammar"),
        "trees": (
            "nmt.parsing.source:SOURCE",
            "bracketed files: files, folders, patterns such as parsed/*.mrg, and sections such as wsj:02-21",
        ),
    },
    "engine": {
        "torch": ("nmt.decoding.load:load_checkpoints", "the model itself"),
        "ctranslate2": ("nmt.export.ctranslate2_engine:load_named_export", "runs the exported model"),
        "int8": ("nmt.decoding.load:load_in_int8", "the model with its weights in int8, on a CPU"),
    },
    "export.target": {
        "argos": ("nmt.export.argos:TARGET", "Argos Translate and LibreTranslate"),
        "ctranslate2": ("nmt.export.ctranslate2:TARGET", "a fast engine"),
        "huggingface": ("nmt.export.huggingface:TARGET", "MarianMTModel"),
        "onnx": ("nmt.export.onnx:ONNX", "transformers.js and onnxruntime"),
        "web": ("nmt.export.onnx:PAGE", "a page that translates in the browser"),
    },
}
"""By setting, then by name: the code, as `module:attribute`, and a few words for the help."""

_CODE = re.compile(r"\w+(\.\w+)*:\w+")
trusted: set[tuple[str, str]] = set()
"""Settings and their values with a colon that the command line or the user's own `conf` gave."""


def load(setting: str, value: str) -> Any:
    """Return the code that a setting's value names."""
    if ":" not in value:
        return imported(CHOICES[setting][value][0])
    if (setting, value) not in trusted:
        raise ConfigError(
            f"{setting}={value} names code, and came with a file: if you trust that code, give the same setting on the "
            "command line"
        )
    if not _CODE.fullmatch(value):
        raise ConfigError(f"{setting}={value} names no code: write it as module:name")
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")  # the working folder, which a console script does not search
    try:
        return imported(value)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{setting}={value}: {error}; write it as module:name") from error


def imported(code: str) -> Any:
    """Return what `module:name` names."""
    module, _, name = code.partition(":")
    return getattr(import_module(module), name)
