"""The interface of export formats: a check of the model's settings, writing, loading, and lines for the model card."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Protocol

from nmt.config.checks import ONLY_IN_TRAINING, marked
from nmt.config.schema import Config, DataConfig, DecodingConfig, ModelConfig
from nmt.decoding.engine import Engine
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.runs.checkpoints import Checkpoint
from nmt.text.tokenizer import Tokenizer

ANY: Final = None
"""Every value of a setting can be expressed."""
Expressible = Mapping[str, Collection[object] | None]
"""The values that a format can express, by setting of the model; for a missing setting, only the default."""
SIZES_AND_TRAINING: Expressible = dict.fromkeys(
    (
        "layers",
        "encoder_layers",
        "decoder_layers",
        "d_model",
        "d_ff",
        "heads",
        "max_positions",
        "tie_embeddings",
        "output_bias",
        *marked(ModelConfig, ONLY_IN_TRAINING),
    ),
    ANY,
)
"""Settings that every format can express, or that matter in training only."""
RESOLVED = {"d_k": "key_size", "d_v": "value_size", "kv_heads": "key_value_heads"}
"""Settings whose 0 means the paper's rule, and the property that applies it."""


Client = Callable[[Sequence[str]], list[str]]
"""Translates lines as the program that an export is made for."""


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A checkpoint to export."""

    checkpoint: Checkpoint
    settings: Config
    """The settings that it was trained with."""
    tokenizer: Tokenizer
    decoding: DecodingConfig
    """The beam search that `eval` would score it with."""
    quantization: str
    """The number format to store weights in: float32 or int8."""


class Exporter(Protocol):
    """A format to export to.

    To add one, write a class like this and name it in the `choices` of a feature, for `export.target`. A format that
    can store weights as int8 brings `int8` there.
    """

    library: str
    """The library that loads the export, as model hubs name it."""

    def check(self, config: ModelConfig) -> None:
        """Refuse a model that the format cannot express."""
        ...

    def positions(self, config: ModelConfig) -> int:
        """Return the length of the longest sentence that the export can translate, in word pieces."""
        ...

    def write(self, folder: Path, trained: TrainedModel) -> None:
        """Write the model and its tokenizer into an empty folder."""
        ...

    def native_engine(self, engine: TorchEngine, trained: TrainedModel) -> TorchEngine:
        """Return the model with the search that users of the export get; `engine` searches as `eval` does."""
        ...

    def open(self, folder: Path, native: TorchEngine, lines: Sequence[str]) -> Engine:
        """Load the export as its users will, to compare it with `native` on `lines`."""
        ...

    def client(self, folder: Path) -> Client | None:
        """Return the export with the search of its program; None if `open` already searches like that."""
        ...

    def usage(self, settings: Config, decoding: DecodingConfig) -> str:
        """Return a code block in Markdown that translates a sentence with the export."""
        ...

    def search_note(self, decoding: DecodingConfig) -> str:
        """Say how the search of the export differs from the one that `eval` scores; empty if it does not."""
        ...


def check_expressible(target: str, config: ModelConfig, expressible: Expressible) -> None:
    """Refuse a model whose settings the target cannot express, in one line that names the setting.

    A setting that `expressible` does not name may only have its default, so that an option that was added to the model
    later is refused until the format declares it.
    """
    defaults = type(config)()
    for field in fields(config):
        declared = field.name in expressible
        value = getattr(config, RESOLVED.get(field.name, field.name) if declared else field.name)
        allowed = expressible[field.name] if declared else (getattr(defaults, field.name),)
        if allowed is not ANY and value not in allowed:
            known = " or ".join(map(str, allowed)) or "none of those that are installed"
            raise UserError(
                f"export.target={target} cannot express model.{field.name}={value}, only {known}: "
                "choose another export.target, or train a model with a value that it can express"
            )


def example_sentence(data: DataConfig) -> str:
    """Return a sentence for the usage example of a model card, with its tag if it needs one."""
    sentence = "A man sleeps." if data.source_lang == "en" else "..."
    return f"{data.tag} {sentence}" if data.tag else sentence
