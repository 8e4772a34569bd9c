"""The splits of all corpora of the prepared data: those of the main one, and those of other corpora."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

from nmt.config.checks import NOT_OF_THE_TEXT, marked
from nmt.config.data import MAIN, DataConfig, corpora_of
from nmt.data import alignments
from nmt.data.sources import registry
from nmt.data.sources.source import Languages, languages
from nmt.errors import UserError


@dataclass(frozen=True, slots=True)
class CorpusSplit:
    """A split of a corpus."""

    corpus: str
    """The name of the corpus."""
    split: str
    """What the split is for: train, valid or test."""
    data: DataConfig
    """The settings of the corpus."""
    prefix: str = "data."
    """What stands before the names of its settings in messages."""

    @property
    def name(self) -> str:
        """The name of the split in the prepared data, such as valid or crawled.valid."""
        return self.split if self.corpus == MAIN else f"{self.corpus}.{self.split}"

    @property
    def languages(self) -> Languages:
        """The source and the target language."""
        return languages(self.data)

    @property
    def columns(self) -> list[str]:
        """The names of what is prepared beside its two sides: alignments, to train on them."""
        return [alignments.NAME] if self.is_training_text and self.data.train_alignments else []

    @property
    def is_training_text(self) -> bool:
        """Whether models are trained on this split."""
        return self.split == "train"


def is_training_text(name: str) -> bool:
    """Return whether models are trained on a split, given its name in the prepared data."""
    return name.rpartition(".")[2] == "train"


@contextmanager
def naming_corpus(prefix: str) -> Iterator[None]:
    """Name another corpus than the main one in the errors of a block, by what stands before its settings."""
    try:
        yield
    except UserError as error:
        if prefix == "data.":
            raise
        raise type(error)(f"{prefix.rstrip('.')}: {_of_corpus(str(error), prefix)}") from error


def _of_corpus(message: str, prefix: str) -> str:
    """Return a message with the settings that one corpus may have under its own name."""
    others = {"max_pieces", *marked(DataConfig, NOT_OF_THE_TEXT)}
    names = "|".join(each.name for each in fields(DataConfig) if each.name not in others)
    return re.sub(rf"(?<![\w./-])data\.(?=({names})\b(?![./-]\w))", prefix, message)


def corpus_splits(data: DataConfig) -> list[CorpusSplit]:
    """Return the splits of all corpora, in the order of preparation."""
    return [
        CorpusSplit(name, split, settings, prefix)
        for name, (settings, prefix) in corpora_of(data).items()
        for split in registry.splits(settings)
        if name == MAIN or registry.has_text(settings, split)
    ]


def training_splits(data: DataConfig) -> list[CorpusSplit]:
    """Return the training text of each corpus."""
    return [each for each in corpus_splits(data) if each.is_training_text]


def split_settings(data: DataConfig, name: str) -> DataConfig:
    """Return the settings of the corpus of a split, given the split's name in the prepared data."""
    return next((each.data for each in corpus_splits(data) if each.name == name), data)


def split_languages(data: DataConfig, name: str) -> Languages:
    """Return the languages of a split, given its name in the prepared data."""
    return languages(split_settings(data, name))
