"""What the formats of exports have in common: the model to export, what a format can express, how it is read."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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
        return f"{self.settings.data.tag} A man sleeps.".strip()


class Program(Protocol):
    """Another program with an export."""

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the translations of lines."""

    def score(self, lines: Sequence[str], translations: Sequence[str]) -> list[float]:
        """Return the log-probability of each translation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A format to export to: what `export.target` names."""

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
    read: Callable[[Path, TrainedModel], Program]
    """Loads an export into the program that it is for."""
    usage: Callable[[TrainedModel], str]
    """Returns Markdown that says how to translate a sentence with the export."""
    note: str = ""
    """How the search that users of the export get differs from that of `eval`."""

    def check(self, name: str, trained: TrainedModel) -> None:
        """Refuse a model that the format, which users call `name`, cannot express.

        A setting that nothing here names may only have its default, so that an option that is added to the model later
        is refused until the format declares it.
        """
        model, tokenizer = trained.settings.model, trained.tokenizer
        known: Values = {
            **{setting: (usual,) for setting, usual in asdict(ModelConfig()).items()},
            **dict.fromkeys(("heads", *SEEN_IN_WEIGHTS, *ONLY_IN_TRAINING), ANY),
            "d_k": (model.d_model // model.heads,),
            "d_v": (model.key_size,),
            "kv_heads": (model.heads,),
            **self.expresses,
        }
        lacks = [
            f"model.{setting}={model.meaning(setting)}, only {' or '.join(map(str, values))}"
            for setting, values in known.items()
            if values is not ANY and model.meaning(setting) not in values
        ]
        kinds = {piece.kind for piece in read_pieces(tokenizer.contents[0])}
        if self.vocabulary != "any" and (len(tokenizer.files) > 1 or USER_DEFINED in kinds):
            lacks.append("tokenizer.joint=false, or tags before sentences")
        if self.vocabulary == "plain BPE" and (model_type(tokenizer.contents[0]) != BPE or BYTE in kinds):
            lacks.append("a tokenizer that is not BPE, or has pieces for bytes")
        if lacks:
            raise UserError(
                f"export.target={name} cannot express {lacks[0]}: "
                "choose another export.target, or train a model that it can express"
            )

    def searching(self, engine: TorchEngine, trained: TrainedModel) -> TorchEngine:
        """Return our model with the search of the export's users, given the model with the search of `eval`."""
        if self.search == "eval":
            return engine
        beam = trained.decoding.beam if self.search == "beam" else 1
        search = replace(engine.config, beam=beam, alpha=0.0, extra_length=trained.longest)
        found = TorchEngine(engine.models, engine.tokenizer, search, engine.device)
        found.max_target_tokens = trained.longest
        return found
