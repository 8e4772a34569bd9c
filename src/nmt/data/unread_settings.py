"""Refuse settings that name text, or columns of it, that the sources do not read."""

from nmt.config.data import TABLES, DataConfig, corpora_of
from nmt.config.keys import written
from nmt.data.corpora import naming_corpus
from nmt.data.sources import registry
from nmt.data.sources.file_languages import has_one_side
from nmt.errors import ConfigError


def check_all_is_read(data: DataConfig) -> None:
    """Refuse a setting without an effect, which would leave the user with other text than was meant."""
    corpora = corpora_of(data).values()
    with_tables = [each.settings.columns for each in corpora if _reads_tables(each.settings)]
    for corpus, prefix in corpora:
        with naming_corpus(prefix):
            _check_text(corpus)
            if corpus.columns and corpus.columns not in with_tables:
                raise ConfigError(f"{_with_value(corpus, 'columns')} names columns, but {_without_tables(corpus)}")


def _check_text(data: DataConfig) -> None:
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


def _reads_tables(data: DataConfig) -> bool:
    are_files = data.source == "files"
    return data.source in TABLES and not (are_files and all(map(has_one_side, (*data.train, *data.valid, *data.test))))


def _without_tables(data: DataConfig) -> str:
    if data.source in TABLES:
        return "all files are text without columns: leave it out"
    return f"data.source={data.source} reads no tables: leave it out"


def _with_value(data: DataConfig, setting: str) -> str:
    return f"data.{setting}={written(getattr(data, setting))}"
