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
ALL_LAYERS: Final = {
    "norm": ("layer", "rms"),
    "norm_placement": ("post", "pre"),
    "activation": ("relu", "gelu", "swish", "swiglu"),
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
        sentence = "A man sleeps." if data.source_lang == "en" else "..."
        return f"{data.tag} {sentence}" if data.tag else sentence


class Reader(Protocol):
    """Another program with an export."""

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the translations of lines."""
        ...

    def score(self, lines: Sequence[str], translations: Sequence[str]) -> list[float]:
        """Return the log-probability of each translation."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A format to export to: what `export.target` names."""

    name: str
    library: str
    """The library that loads the export, as model hubs name it."""
    expresses: Mapping[str, Collection[object] | None]
    """The values that the format can express, by setting of the model; for a missing setting, only the default."""
    any_width: bool = False
    """Whether heads may have another width than d_model / h."""
    shared_heads: bool = True
    """Whether several query heads may share a key and value head."""
    plain_vocabulary: bool = False
    """Whether both languages must share one vocabulary, which has no tags."""
    only_bpe: bool = False
    """Whether the tokenizer must be BPE without pieces for bytes."""
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
    for what, known in _inexpressible(target, trained.settings.model, trained.tokenizer):
        raise UserError(
            f"export.target={target.name} cannot express {what}, only {known}: "
            "choose another export.target, or train a model that it can express"
        )
    target.write(folder, trained)


def _inexpressible(target: Target, config: ModelConfig, tokenizer: Tokenizer) -> Iterator[tuple[str, str]]:
    """Yield what a format cannot express, and what it can.

    A setting that nothing here names may only have its default, so that an option that was added to the model later is
    refused until the format declares it.
    """
    resolved = {"d_k": config.key_size, "d_v": config.value_size, "kv_heads": config.key_value_heads}
    known: Mapping[str, Collection[object] | None] = {
        **dict.fromkeys(("heads", *SEEN_IN_WEIGHTS, *ONLY_IN_TRAINING), ANY),
        "d_k": ANY if target.any_width else (config.d_model // config.heads,),
        "d_v": (config.key_size,),
        "kv_heads": ANY if target.shared_heads else (config.heads,),
        **target.expresses,
    }
    for name in (each.name for each in fields(config)):
        value = resolved.get(name, getattr(config, name))
        allowed = known.get(name, (getattr(type(config)(), name),))
        if allowed is not ANY and value not in allowed:
            yield f"model.{name}={value}", " or ".join(map(str, allowed))
    kinds = {piece.kind for piece in read_pieces(tokenizer.contents[0])}
    if target.plain_vocabulary and len(tokenizer.files) > 1:
        yield "tokenizer.joint=false", "one vocabulary for both languages"
    if target.plain_vocabulary and USER_DEFINED in kinds:
        yield "tags before sentences", "a vocabulary without them"
    if target.only_bpe and model_type(tokenizer.contents[0]) != BPE:
        yield "a tokenizer with another tokenizer.model_type", "bpe"
    if target.only_bpe and BYTE in kinds:
        yield "pieces that stand for bytes", "a vocabulary without them"


def searching_as_users(target: Target, engine: TorchEngine, trained: TrainedModel) -> TorchEngine:
    """Return our model with the search of the export's users, given the model with the search of `eval`."""
    if target.search == "eval":
        return engine
    beam = trained.decoding.beam if target.search == "beam" else 1
    search = replace(engine.config, beam=beam, alpha=0.0, extra_length=trained.longest)
    found = TorchEngine(engine.models, engine.tokenizer, search, engine.device)
    found.max_target_tokens = trained.longest
    return found
