"""The settings of fine-tuning: the model that a run begins from, its vocabulary, and weights that stay as they are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING

from nmt.config.capabilities import Capability, Use
from nmt.config.checks import check_choice
from nmt.config.choices import is_text
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config

VOCABULARIES = ("old", "new", "extend")
"""How the vocabulary of a run relates to that of the model that it begins from."""

PARTS: Mapping[str, Sequence[str]] = {
    "encoder": ("encoder.*", "encoder_norm.*"),
    "decoder": ("decoder.*", "decoder_norm.*"),
    "embeddings": ("vectors.*", "*_positions"),
}
"""The patterns of the parameters of each part. Tied embeddings include the projection before the softmax."""
TARGET_VECTORS = ("vectors.shared", "vectors.target")
"""The parameters, one of which every model has, that hold the word vectors of the target side."""


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """Where a run begins, and what it does not change."""

    init_from: str = ""
    """Model to begin from, with a fresh optimizer and from the start of the data: the name of a run (its averaged, else
    best, else last checkpoint), or the folder of a checkpoint. The new model takes its shape (model.*),
    unless the command line gives another one. Empty begins with random weights."""
    init_vocabulary: str = "old"
    """Vocabulary with init_from: old (that model's), new (learned from this text) or extend (the old one and pieces of
    this text, up to tokenizer.vocab_size). A new piece gets the mean vector of the old pieces that it consists of."""
    init_skip: list[str] = field(default_factory=list)
    """With init_from, weights to leave as they are initialised, and model settings that may differ: names in which *
    stands for any text, such as [encoder.5.*,model.activation]."""
    freeze: list[str] = field(default_factory=list)
    """Weights that training does not change: encoder, decoder, embeddings, or names in which * stands for any text."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_choice("training.init_vocabulary", self.init_vocabulary, VOCABULARIES)
        if not self.init_from and (self.init_skip or self.init_vocabulary != "old"):
            raise ConfigError("training.init_skip and training.init_vocabulary need training.init_from: name a model")

    @property
    def uses_old_vocabulary(self) -> bool:
        """Whether the tokenizer of the model to begin from is kept or extended."""
        return bool(self.init_from) and self.init_vocabulary != "new"

    @property
    def freezes_vectors(self) -> bool:
        """Whether training leaves the word vectors of the target side as they are."""
        patterns = chain.from_iterable(PARTS.get(name, (name,)) for name in self.freeze)
        return any(fnmatchcase(each, pattern) for pattern in patterns for each in TARGET_VECTORS)


def check(config: "Config") -> None:
    """Make sure that there is one tokenizer to keep or extend, and that it can be extended."""
    tuning, target = config.of(FineTuning), config.data.target_lang
    if config.tokenizer.folder and tuning.uses_old_vocabulary:
        raise ConfigError(
            "tokenizer.folder names a tokenizer, but training.init_vocabulary takes that of training.init_from: "
            "remove tokenizer.folder, or set training.init_vocabulary=new"
        )
    if tuning.init_vocabulary == "extend" and not is_text(target):
        raise ConfigError(
            f"training.init_vocabulary=extend needs text: the vocabulary of {target} is symbols, which text cannot "
            "extend; choose new or old"
        )


def uses(config: "Config") -> Iterator[Use]:
    """Say that the tokenizer may be that of the model to begin from."""
    if config.of(FineTuning).init_from:
        yield Use("training.init_from", takes=frozenset({Capability.OWN_TOKENIZER}))
