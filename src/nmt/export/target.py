"""What the formats of exports have in common: the model to export, what a format can express, how it is read."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Protocol

from nmt.config.checks import ONLY_IN_TRAINING, SEEN_IN_WEIGHTS, marked
from nmt.config.data import DataConfig
from nmt.config.decoding import DecodingConfig
from nmt.config.model import ModelConfig
from nmt.config.tree import Config
from nmt.decoding.batches import MAX_SOURCE_TOKENS
from nmt.decoding.engine import Engine
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.runs.checkpoint import Checkpoint
from nmt.text.tokenizer import Tokenizer

ANY: Final = None
"""Every value of a setting can be expressed."""
Expressible = Mapping[str, Collection[object] | None]
"""The values that a format can express, by setting of the model; for a missing setting, only the default."""
SIZES_AND_TRAINING: Expressible = dict.fromkeys(
    ("heads", *marked(ModelConfig, SEEN_IN_WEIGHTS), *marked(ModelConfig, ONLY_IN_TRAINING)), ANY
)
"""Settings that every format can express, or that matter in training only."""
RESOLVED = {"d_k": "key_size", "d_v": "value_size", "kv_heads": "key_value_heads"}
"""Settings whose 0 means the paper's rule, and the property that applies it."""


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

    @property
    def longest(self) -> int:
        """The largest number of word pieces of a translation, for programs that have one limit for all sentences."""
        longest = self.settings.data.max_pieces + 1 + self.decoding.extra_length
        return min(longest, positions(self.settings.model) - 1)


class Reader(Protocol):
    """Another program with an export."""

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the translations of lines."""
        ...

    def score(self, lines: Sequence[str], translations: Sequence[str]) -> list[float]:
        """Return the log-probability of each translation."""
        ...


class EngineReader:
    """A program that we translate with through an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def translate(self, lines: Sequence[str]) -> list[str]:
        """See `Reader.translate`."""
        return [each.text for each in self.engine.translate(lines)]

    def score(self, lines: Sequence[str], translations: Sequence[str]) -> list[float]:
        """See `Reader.score`."""
        return [each.log_probability for each in self.engine.score(lines, translations)]


@dataclass(frozen=True, slots=True)
class Target:
    """A format to export to: what `export.target` names."""

    library: str
    """The library that loads the export, as model hubs name it."""
    check: Callable[[Config, Tokenizer], None]
    """Refuses a model or a tokenizer that the format cannot express."""
    write: Callable[[Path, TrainedModel], None]
    """Writes the model and its tokenizer into an empty folder."""
    read: Callable[[Path, TrainedModel], Reader]
    """Loads an export into the program that it is for."""
    usage: Callable[[Config, DecodingConfig], str]
    """Returns Markdown that says how to translate a sentence with the export."""
    note: str = ""
    """How the search that users of the export get differs from that of `eval`."""
    native: Callable[[TorchEngine, TrainedModel], TorchEngine] = lambda engine, _: engine
    """Returns our model with the search that `read` has, given the model with the search that `eval` has."""


def positions(config: ModelConfig) -> int:
    """Return the length of the longest sentence that an export can translate, in word pieces."""
    return config.max_positions if config.positions == "learned" else MAX_SOURCE_TOKENS


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
            raise UserError(
                f"export.target={target} cannot express model.{field.name}={value}, only "
                f"{' or '.join(map(str, allowed))}: "
                "choose another export.target, or train a model with a value that it can express"
            )


def refuse_tokenizer(target: str, what: str, known: str) -> UserError:
    """Return the error about a tokenizer that a format cannot express."""
    return UserError(
        f"export.target={target} cannot express {what}, only {known}: "
        "choose another export.target, or train with a tokenizer that it can express"
    )


def example_sentence(data: DataConfig) -> str:
    """Return a sentence for the usage example of a model card, with its tag if it needs one."""
    sentence = "A man sleeps." if data.source_lang == "en" else "..."
    return f"{data.tag} {sentence}" if data.tag else sentence
