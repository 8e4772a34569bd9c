"""The corpora that training text is made of: one, or a mixture of the main one and others, each with its splits."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from nmt.config.data import MAIN, DataConfig, corpora_of
from nmt.config.keys import written
from nmt.data import alignments
from nmt.data.sources import registry
from nmt.errors import ConfigError, UserError


class CorpusSplit(NamedTuple):
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
    def columns(self) -> list[str]:
        """The names of what is prepared beside its two sides: alignments, to train on them."""
        return [alignments.NAME] if self.is_training_text and self.data.train_alignments else []

    @property
    def texts(self) -> list[str]:
        """The names of its text files, with one sentence per line: source, target, and further columns."""
        return [f"{self.name}.{each}" for each in (*self.data.languages, *self.columns)]

    @property
    def is_training_text(self) -> bool:
        """Whether models are trained on this split."""
        return self.split == "train"


@contextmanager
def naming_corpus(prefix: str) -> Iterator[None]:
    """Name another corpus than the main one in the errors of a block, by what stands before its settings."""
    try:
        yield
    except UserError as error:
        if prefix == "data.":
            raise
        raise type(error)(f"{prefix.rstrip('.')}: {error}") from error


def corpus_splits(data: DataConfig) -> list[CorpusSplit]:
    """Return the splits of all corpora, in the order of preparation."""
    return [
        CorpusSplit(name, split, settings, prefix)
        for name, (settings, prefix) in corpora_of(data).items()
        for split in registry.source_named(settings.source).splits
        if name == MAIN or registry.has_text(settings, split)
    ]


def training_splits(data: DataConfig) -> list[CorpusSplit]:
    """Return the training text of each corpus."""
    return [each for each in corpus_splits(data) if each.is_training_text]


def tags_of(splits: Iterable[CorpusSplit]) -> list[str]:
    """Return the different tags of the corpora, in order."""
    return list(dict.fromkeys(split.data.tag for split in splits if split.data.tag))


def untagged(line: str, tag: str) -> str:
    """Return a source sentence without the tag of its corpus, which may be empty."""
    return line.removeprefix(f"{tag} ") if tag else line


def split_settings(data: DataConfig, name: str) -> DataConfig:
    """Return the settings of the corpus of a split, given the split's name in the prepared data."""
    return next((each.data for each in corpus_splits(data) if each.name == name), data)


def check_all_is_read(data: DataConfig) -> None:
    """Refuse text for a source that generates its own: the user means other text."""
    usual = DataConfig()
    for corpus, prefix in corpora_of(data).values():
        source = registry.source_named(corpus.source)
        for name in () if source.is_named else ("train", "valid", "test", "hold_out"):
            value = getattr(corpus, name)
            if value and value != getattr(usual, name) and registry.source_of(corpus, name) is source:
                raise ConfigError(
                    f"{prefix}{name}={written(value)} has no effect, because data.source={corpus.source} has text of "
                    "its own: leave it out, or set data.source=files"
                )
