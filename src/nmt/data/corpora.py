"""The splits of all corpora of the prepared data: those of the main one, and those of other corpora."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from nmt.config.data import MAIN, TABLES, DataConfig, corpora_of
from nmt.config.keys import written
from nmt.data import alignments
from nmt.data.sources import registry
from nmt.data.sources.file_languages import has_one_side
from nmt.data.sources.source import Languages, languages
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
        message = re.sub(r"(?<![\w./-])data\.(?=[a-z_]+\b(?![./-]\w))", prefix, str(error))
        raise type(error)(f"{prefix.rstrip('.')}: {message}") from error


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


def split_settings(data: DataConfig, name: str) -> DataConfig:
    """Return the settings of the corpus of a split, given the split's name in the prepared data."""
    return next((each.data for each in corpus_splits(data) if each.name == name), data)


def split_languages(data: DataConfig, name: str) -> Languages:
    """Return the languages of a split, given its name in the prepared data."""
    return languages(split_settings(data, name))


def check_all_is_read(data: DataConfig) -> None:
    """Refuse settings of text without an effect, which would leave the user with other text than was meant."""
    corpora = corpora_of(data).values()
    with_tables = [each.columns for each, _ in corpora if each.source in TABLES and not _are_one_sided(each)]
    for corpus, prefix in corpora:
        with naming_corpus(prefix):
            _check_source(corpus)
            if corpus.columns and corpus.columns not in with_tables:
                reads_none = f"data.source={corpus.source} reads no tables"
                why = "all files are text without columns" if corpus.source in TABLES else reads_none
                raise ConfigError(f"data.columns={written(corpus.columns)} names columns, but {why}: leave it out")


def _are_one_sided(data: DataConfig) -> bool:
    return data.source == "files" and all(map(has_one_side, (*data.train, *data.valid, *data.test)))


def _check_source(data: DataConfig) -> None:
    """Refuse text for a source that generates its own."""
    source, usual = registry.source_named(data.source), DataConfig()
    for split in ("train", "valid", "test"):
        names = getattr(data, split)
        is_read = source.settings or registry.source_of(data, split) is not source
        if names and names != getattr(usual, split) and not is_read:
            raise ConfigError(
                f"data.{split} is not read by data.source={data.source}: set data.source=files, or experiment=own"
            )
    if data.hold_out and not source.can_hold_out:
        raise ConfigError(
            f"data.hold_out={data.hold_out:g} has no effect: data.source={data.source} has development and test text "
            "of its own. Set data.hold_out=0"
        )
