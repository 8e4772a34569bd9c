"""A source of parallel text, as the rest of data preparation sees it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from nmt.config.data import DataConfig
from nmt.errors import UserError
from nmt.text.alignments import GoldAlignment

Pair = tuple[Any, ...]
"""A sentence and its translation; a training pair may have an alignment at the end."""
Languages = tuple[str, str]
"""The language of the source side and of the target side."""
Fingerprint = Mapping[str, object]
"""A JSON object that identifies the text of a split: equal fingerprints mean equal text."""


class Source(NamedTuple):
    """The functions of a source; each takes the settings and the name of a split."""

    fingerprint: Callable[[DataConfig, str], Fingerprint]
    """Return the fingerprint of a split without reading its pairs."""
    pairs: Callable[[DataConfig, str], Iterator[Pair]]
    """Yield the pairs of a split, source side first."""
    further_references: Callable[[DataConfig, str], list[list[str]]] = lambda *_: []
    """Return the sentences of each reference of a split after the first one."""
    alignments: Callable[[DataConfig, str], Iterator[GoldAlignment]] | None = None
    """Yield the word alignments of a split; None if the source does not know them."""
    is_named: bool = False
    """Whether data.train, data.valid and data.test name the text; if not, the source has its own for all splits."""
    splits: tuple[str, ...] = ("test", "valid", "train")
    """Splits in the order of preparation: small ones first, so that their errors show early."""


def split_names(config: DataConfig, split: str, wanted: str) -> list[str]:
    """Return the files or the Hub's splits that the settings name for a split; `wanted` says which of the two."""
    names = {"train": config.train, "valid": config.valid, "test": config.test}[split]
    if not names or "" in names:
        hint = "" if split == "train" else ", or hold out some of the training text: data.hold_out=0.01"
        raise UserError(f"data.{split} is empty: name {wanted}{hint}.")
    return names
