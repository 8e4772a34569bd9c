"""What a feature declares: the whole interface between the core and features.

A feature adds to the core without being known to it: the core asks `nmt.discovery.features()` for what all of them
declare. A declaration names code as `module:name`, which is imported when it is first used, so that listing the
features, checking settings and printing help import neither torch nor any optional package.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple


class FileFormat(NamedTuple):
    """A format of files of parallel text, which hold one side or both."""

    name: str
    endings: tuple[str, ...]
    """Endings of file names, in lower case; those of compressed files may follow."""
    pairs: str = ""
    """`module:function` that yields the pairs of a file, given its path, the languages and the columns
    (`nmt.data.sources.source.Columns`) that the user names; empty if a file holds one side."""
    sentences: str = ""
    """The same for the sentences of a file that holds one side, given its path and its language."""
    shards: tuple[str, ...] = ()
    """Endings by which shards of a split are found in a folder, those of compressed files included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What a feature adds to the core."""

    summary: str
    """A few words for the help."""
    test_sets: Mapping[str, str] = field(default_factory=dict)
    """By the word before the colon in data.valid and data.test, the `nmt.data.sources.source.Source` of the sets."""
    file_formats: tuple[FileFormat, ...] = ()
    """Further formats of files of parallel text."""
    columns: tuple[str, ...] = ()
    """Values beside the two sides of the training text, each a `nmt.data.columns.Column`."""
    filters: tuple[str, ...] = ()
    """Further filters of the training text, each a `nmt.data.filters.Filter`."""
    text_tasks: tuple[str, ...] = ()
    """What preparation writes or finds out once it has the text, each a `nmt.data.text_task.TextTask`."""
    mixing: str = ""
    """A `nmt.data.training_text.Mixing`, if there are further corpora."""
    transform: str = ""
    """The same for a `nmt.data.transform.BatchTransform`; the function takes the tokenizer as well."""
    tokenizer: str = ""
    """A function that takes all settings and returns a `nmt.data.earlier_tokenizer.EarlierTokenizer`, or None."""

    def __post_init__(self) -> None:
        """Check that each field holds what the core iterates over, because types are not checked at run time."""
        for each in fields(self):
            kind = Mapping if each.default_factory is dict else type(each.default) if each.default == () else str
            if not isinstance(given := getattr(self, each.name), kind):
                raise TypeError(f"{each.name} of a Feature is a {kind.__name__}, not {given!r}")
