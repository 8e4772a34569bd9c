"""The names that settings such as `model.positions` can take, and where the code behind each name is.

This is the one place to register an implementation, in the manner of a package's entry points: a line names a module
and an attribute, which are imported when they are first used. So settings are checked, and their help is written,
without importing torch.
"""

from collections.abc import Mapping
from typing import Any

from nmt.discovery import features, imported
from nmt.feature import TASKS, Choice

CORE: Mapping[str, Mapping[str, Choice]] = {
    "model.architecture": {
        "transformer": Choice("nmt.model.transformer:Transformer", "the paper's encoder and decoder")
    },
    "model.positions": {
        "sinusoidal": Choice("nmt.model.positions.sinusoidal:Sinusoidal", "the paper's"),
        "learned": Choice("nmt.model.positions.learned:Learned", "Table 3, row E"),
    },
    "model.norm": {
        "layer": Choice("nmt.model.norms:LAYER", "the paper's LayerNorm"),
        "rms": Choice("nmt.model.norms:RMS", "RMSNorm"),
    },
    "model.activation": {
        "relu": Choice("nmt.model.activations:RELU", "the paper's"),
        "gelu": Choice("nmt.model.activations:GELU", "smooth"),
        "swish": Choice("nmt.model.activations:SWISH", "smooth, in most of Marian's models"),
        "swiglu": Choice("nmt.model.activations:SWIGLU", "gated"),
    },
    "decoding.utility": {
        "chrf": Choice("nmt.decoding.utilities:by_chrf", "chrF"),
        "bleu": Choice("nmt.decoding.utilities:by_bleu", "BLEU"),
    },
    "training.schedule": {
        "inverse_sqrt": Choice("nmt.training.schedule:inverse_sqrt", "the paper's"),
        "cosine": Choice("nmt.training.schedule:cosine", "half a wave to zero"),
        "linear": Choice("nmt.training.schedule:linear", "a straight line to zero"),
        "constant": Choice("nmt.training.schedule:constant", "stays at the peak"),
    },
    "runtime.shard": {"none": Choice("nmt.training.replicas:Replicas", "each process keeps all weights")},
    "training.optimizer": {"adam": Choice("nmt.training.optimizer:adam", "the paper's")},
    "data.source": {
        "hub": Choice("nmt.data.sources.hub:SOURCE", "Hugging Face"),
        "files": Choice("nmt.data.sources.files:SOURCE", "your own"),
    },
    "data.engine": {"processes": Choice("nmt.data.engine:LocalProcesses", "those of this machine")},
    "engine": {
        "torch": Choice("nmt.decoding.load_engine:load_checkpoints", "the model itself"),
        "int8": Choice("nmt.decoding.int8_engine:load_in_int8", "the model with its weights in int8, on a CPU"),
    },
}
"""Those of the core alone."""


def _with_features() -> dict[str, dict[str, Choice]]:
    """Return the choices of the core and of the features."""
    found = {setting: dict(choices) for setting, choices in CORE.items()}
    for feature in features().values():
        for setting, choices in feature.all_choices.items():
            found.setdefault(setting, {}).update(choices)
    return found


CHOICES = _with_features()
"""By setting, then by name."""


def find(setting: str, name: str) -> Any:
    """Return the code that a setting's value names."""
    return imported(CHOICES[setting][name].code)


def brings(setting: str, name: str) -> tuple[str, ...]:
    """Return what a setting's value brings; nothing if there is no such value."""
    choice = CHOICES[setting].get(name)
    return choice.brings if choice else ()


TEXT = "text"
"""The name of the core's task."""


def task_name(target_lang: str) -> str:
    """Return the name of the task that a value of `data.target_lang` selects: text, or this value."""
    return target_lang if target_lang in CHOICES.get(TASKS, {}) else TEXT


def is_text(target_lang: str) -> bool:
    """Return whether a target side is text, and not what a feature makes of this value of `data.target_lang`."""
    return task_name(target_lang) == TEXT


def describe(setting: str) -> str:
    """List the names that a setting can take, each with its meaning; empty if it names no code."""
    return ", ".join(f"{name} ({choice.meaning})" for name, choice in CHOICES.get(setting, {}).items())
