"""The settings of word alignments."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from nmt.config.capabilities import Capability, Use
from nmt.config.checks import OF_ONE_CORPUS
from nmt.config.choices import brings, is_text
from nmt.config.schema.corpora import corpora_of
from nmt.config.schema.data import TABLES
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.config.schema import Config, DataConfig


MAX_LINKED_PIECES = 65_535
"""The longest sentence, in word pieces, that can have a word alignment."""


@dataclass(frozen=True, kw_only=True)
class AlignedData:
    """The word alignments of the training text and of the test text."""

    train_alignments: str = field(default="", metadata=OF_ONE_CORPUS)
    """File with the word alignment of each training pair in Pharaoh format, for training.guided_weight, or
    the name of a data.source that has alignments itself. Empty for none."""
    test_alignments: str = field(default="", metadata=OF_ONE_CORPUS)
    """File with the true word alignments of test in Pharaoh format, with which `eval` compares the model's."""

    def __post_init__(self) -> None:
        """Make sure that the pairs can have word alignments."""
        data = cast("DataConfig", self)
        if self.test_alignments and (not data.test or data.source not in TABLES):
            raise ConfigError("data.test_alignments needs a test set of your own: name it in data.test")
        if not self.train_alignments:
            return
        if not is_text(data.target_lang):
            raise ConfigError(f"data.train_alignments needs text on both sides, not {data.target_lang}: remove it")
        source = data.source
        if "alignments" in brings("data.source", source) and self.train_alignments != source:
            raise ConfigError(f"data.source={source} has its own alignments: set data.train_alignments={source}")
        if data.max_pieces > MAX_LINKED_PIECES:
            raise ConfigError(f"data.train_alignments needs data.max_pieces of at most {MAX_LINKED_PIECES:,}")


def check(config: "Config") -> None:
    """Make sure that a head has alignments to learn."""
    corpora = (cast(AlignedData, corpus.settings) for corpus in corpora_of(config.data).values())
    if config.training.guided_weight and not any(each.train_alignments for each in corpora):
        raise ConfigError("training.guided_weight needs word alignments: name their file in data.train_alignments")


def uses(config: "Config") -> Iterator[Use]:
    """Say what a guided head needs."""
    if config.training.guided_weight:
        needs = (
            *(Capability.CROSS_ATTENTION, Capability.EVERY_LAYER, Capability.ONE_PASS, Capability.WORDS_AS_WRITTEN),
            Capability.UNCOMPILED_MODEL,
        )
        yield Use("training.guided_weight", needs=frozenset(needs))
