"""The names that settings such as `model.positions` can take, and where the code behind each name is.

A line names a module and an attribute, which are imported when they are first used. So settings are checked, and their
help is written, without importing torch. A value with a colon, such as `training.optimizer=mine:Lion`, names code of
the user; only the command line and the user's own `conf` may give one.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

from nmt.errors import ConfigError


class Choice(NamedTuple):
    """One implementation of what a setting such as `model.positions` names."""

    code: str
    """`module:attribute`."""
    meaning: str
    """A few words for the help."""


CHOICES: Mapping[str, Mapping[str, Choice]] = {
    "model.architecture": {
        "transformer": Choice("nmt.model.transformer:Transformer", "the paper's encoder and decoder"),
        "decoder_only": Choice("nmt.model.decoder_only:DecoderOnly", "source and translation as one causal stream"),
    },
    "model.positions": {
        "sinusoidal": Choice("nmt.model.positions:Sinusoidal", "the paper's"),
        "learned": Choice("nmt.model.positions:Learned", "Table 3, row E"),
        "relative": Choice("nmt.model.positions:Relative", "learned vectors of clipped distances"),
        "rotary": Choice("nmt.model.positions:Rotary", "rotated queries and keys"),
        "alibi": Choice("nmt.model.positions:Alibi", "scores fall linearly with distance"),
    },
    "model.norm": {
        "layer": Choice("nmt.model.modules:LayerNorm", "the paper's LayerNorm"),
        "rms": Choice("nmt.model.modules:RMSNorm", "RMSNorm"),
    },
    "model.activation": {
        "relu": Choice("nmt.model.activations:RELU", "the paper's"),
        "gelu": Choice("nmt.model.activations:GELU", "smooth"),
        "swish": Choice("nmt.model.activations:SWISH", "smooth, in most of Marian's models"),
        "swiglu": Choice("nmt.model.activations:SWIGLU", "gated"),
    },
    "training.optimizer": {
        "adam": Choice("nmt.training.optimizer:adam", "the paper's"),
        "muon": Choice("nmt.training.muon:muon", "Muon for the matrices of the layers, Adam for the rest"),
    },
    "training.schedule": {
        "inverse_sqrt": Choice("nmt.training.schedule:inverse_sqrt", "the paper's"),
        "cosine": Choice("nmt.training.schedule:cosine", "half a wave to zero"),
        "linear": Choice("nmt.training.schedule:linear", "a straight line to zero"),
        "constant": Choice("nmt.training.schedule:constant", "stays at the peak"),
    },
    "data.source": {
        "hub": Choice("nmt.data.sources.hub:SOURCE", "Hugging Face"),
        "files": Choice("nmt.data.sources.files:SOURCE", "your own"),
        "multi30k": Choice("nmt.data.sources.multi30k:SOURCE", "fetched from its authors' repository"),
        "demo": Choice("nmt.demo.source:SOURCE", "the embedded grammar"),
        "trees": Choice(
            "nmt.parsing.source:SOURCE",
            "bracketed files: files, folders, patterns such as parsed/*.mrg, and sections such as wsj:02-21",
        ),
    },
    "engine": {
        "torch": Choice("nmt.decoding.load:load_checkpoints", "the model itself"),
        "ctranslate2": Choice("nmt.export.ctranslate2_engine:load_named_export", "runs the exported model"),
        "int8": Choice("nmt.decoding.load:load_in_int8", "the model with its weights in int8, on a CPU"),
    },
    "export.target": {
        "argos": Choice("nmt.export.argos:TARGET", "Argos Translate and LibreTranslate"),
        "ctranslate2": Choice("nmt.export.ctranslate2:TARGET", "a fast engine"),
        "huggingface": Choice("nmt.export.huggingface:TARGET", "MarianMTModel"),
        "onnx": Choice("nmt.export.onnx:ONNX", "transformers.js and onnxruntime"),
        "web": Choice("nmt.export.onnx:PAGE", "a page that translates in the browser"),
    },
}
"""By setting, then by name."""

trusted: set[tuple[str, str]] = set()
"""Settings and their values with a colon that the command line or the user's own `conf` gave."""


def load(setting: str, value: str) -> Any:
    """Return the code that a setting's value names."""
    if ":" not in value:
        return imported(CHOICES[setting][value].code)
    if (setting, value) not in trusted:
        raise ConfigError(
            f"{setting}={value} names code, and came with a file: if you trust that code, give the same setting on the "
            "command line"
        )
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
