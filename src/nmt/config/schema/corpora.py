"""The corpora of a run: the one that `data` describes, and those that features add."""

from typing import TYPE_CHECKING, NamedTuple

from nmt.discovery import features, imported

if TYPE_CHECKING:
    from nmt.config.schema.data import DataConfig

MAIN = "main"
"""The name of the corpus that `data` describes."""


class Corpus(NamedTuple):
    """A corpus to prepare and to train on."""

    settings: "DataConfig"
    prefix: str
    """What stands before the names of its settings in messages, such as `data.`."""


def corpora_of(data: "DataConfig") -> dict[str, Corpus]:
    """Return each corpus of the training text by name, the main one first."""
    found = {MAIN: Corpus(data, "data.")}
    for feature in features().values():
        if feature.corpora:
            found |= imported(feature.corpora)(data)
    return found
