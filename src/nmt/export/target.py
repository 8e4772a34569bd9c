"""What the formats of exports have in common: the model to export, what a format can express, how it is read."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final, Literal, Protocol

from torch import Tensor

from nmt.config.decoding import DecodingConfig
from nmt.config.model import ONLY_IN_TRAINING, SEEN_IN_WEIGHTS, ModelConfig
from nmt.config.tree import Config
from nmt.decoding.batches import MAX_SOURCE_TOKENS
from nmt.decoding.torch_engine import TorchEngine
from nmt.errors import UserError
from nmt.text.sentencepiece_model import BPE, BYTE, USER_DEFINED, model_type, read_pieces
from nmt.text.tokenizer import Tokenizer

ANY: Final = None
"""Every value of a setting can be expressed."""
Values = Mapping[str, Collection[object] | None]
"""The values of settings that can be expressed."""
ALL_LAYERS: Values = {
    "norm": ("layer", "rms"),
    "norm_placement": ("post", "pre"),
    "activation": ("relu", "gelu", "swish", "swiglu"),
    "kv_heads": ANY,
}
"""Every kind of layer that a program can have to express."""


@dataclass(frozen=True, slots=True)
class TrainedModel:
    """A model to export."""

    settings: Config
    """The settings that it was trained with."""
    weights: Mapping[str, Tensor]
    tokenizer: Tokenizer
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    """The beam search that `eval` would score it with."""
    quantization: str = "float32"
    """The number format to store weights in: float32 or int8."""

    @property
    def positions(self) -> int:
        """The length of the longest sentence that an export can translate, in word pieces."""
        model = self.settings.model
        return model.max_positions if model.positions == "learned" else MAX_SOURCE_TOKENS

    @property
    def longest(self) -> int:
        """The largest number of word pieces of a translation, for programs that have one limit for all sentences."""
        return min(self.settings.data.max_pieces + 1 + self.decoding.extra_length, self.positions - 1)

    @property
    def example(self) -> str:
        """A sentence for the usage example of a model card, with its tag if it needs one."""
        data = self.settings.data
        return f"{data.tag} A man sleeps.".strip()


class Reader(Protocol):
    """Another program with an export."""

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the translations of lines."""

    def score(self, lines: Sequence[str], translations: Sequence[str]) -> list[float]:
        """Return the log-probability of each translation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A format to export to: what `export.target` names."""

    name: str
    library: str
    """The library that loads the export, as model hubs name it."""
    expresses: Values
    """The values that the format can express, by setting of the model; for a missing setting, only the default."""
    vocabulary: Literal["any", "plain", "plain BPE"] = "any"
    """Whether both languages must share one vocabulary without tags, and whether it must be BPE, without bytes."""
    search: Literal["eval", "beam", "greedy"] = "eval"
    """How its users search: as `eval` does, or without a length penalty and with one limit for all sentences."""
    write: Callable[[Path, TrainedModel], None]
    """Writes the model and its tokenizer into an empty folder."""
    read: Callable[[Path, TrainedModel], Reader]
    """Loads an export into the program that it is for."""
    usage: Callable[[TrainedModel], str]
    """Returns Markdown that says how to translate a sentence with the export."""
    note: str = ""
    """How the search that users of the export get differs from that of `eval`."""


def export(target: Target, folder: Path, trained: TrainedModel) -> None:
    """Write a model into an empty folder; refuse one that the format cannot express, in one line that names why."""
    lacks = [*_unknown_settings(target, trained.settings.model), *_unknown_pieces(target, trained.tokenizer)]
    if lacks:
        raise UserError(
            f"export.target={target.name} cannot express {lacks[0]}: "
            "choose another export.target, or train a model that it can express"
        )
    target.write(folder, trained)


def _unknown_settings(target: Target, config: ModelConfig) -> Iterator[str]:
    """Yield the settings of a model that a format cannot express.

    A setting that nothing here names may only have its default, so that an option that was added to the model later is
    refused until the format declares it.
    """
    resolved = {"d_k": config.key_size, "d_v": config.value_size, "kv_heads": config.key_value_heads}
    known: Values = {
        **dict.fromkeys(("heads", *SEEN_IN_WEIGHTS, *ONLY_IN_TRAINING), ANY),
        "d_k": (config.d_model // config.heads,),
        "d_v": (config.key_size,),
        "kv_heads": (config.heads,),
        **target.expresses,
    }
    for name in (each.name for each in fields(config)):
        value, allowed = resolved.get(name, getattr(config, name)), known.get(name, (getattr(type(config)(), name),))
        if allowed is not ANY and value not in allowed:
            yield f"model.{name}={value}, only {' or '.join(map(str, allowed))}"


def _unknown_pieces(target: Target, tokenizer: Tokenizer) -> Iterator[str]:
    """Yield what in a tokenizer a format cannot express."""
    kinds = {piece.kind for piece in read_pieces(tokenizer.contents[0])}
    if target.vocabulary != "any" and (len(tokenizer.files) > 1 or USER_DEFINED in kinds):
        yield "tokenizer.joint=false, or tags before sentences"
    if target.vocabulary == "plain BPE" and (model_type(tokenizer.contents[0]) != BPE or BYTE in kinds):
        yield "a tokenizer that is not BPE, or has pieces for bytes"


def searching_as_users(target: Target, engine: TorchEngine, trained: TrainedModel) -> TorchEngine:
    """Return our model with the search of the export's users, given the model with the search of `eval`."""
    if target.search == "eval":
        return engine
    beam = trained.decoding.beam if target.search == "beam" else 1
    search = replace(engine.config, beam=beam, alpha=0.0, extra_length=trained.longest)
    found = TorchEngine(engine.models, engine.tokenizer, search, engine.device)
    found.max_target_tokens = trained.longest
    return found
