"""What the training text has beside its two sides: a column is a value of each pair, and a feature adds it.

A source yields a pair as a tuple: the source sentence, its translation, then the cells of the columns in use, in the
order of `columns_of`. Preparation writes a cell as a line of a text file, the encoder turns the line into numbers, and
the store keeps these beside the tokens, as `PairStore.gather(name, ...)` returns them. Training packs the numbers of a
micro-batch into tensors, if a term of the loss asks for the column.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

from nmt.config.data import DataConfig
from nmt.config.registry import imported
from nmt.discovery import features

if TYPE_CHECKING:  # training imports torch, preparation does not
    import torch

    from nmt.data.batches import IntArray
    from nmt.data.sources.source import Pair
    from nmt.data.store import Pairs
    from nmt.text.tokenizer import Tokenizer

Lines = Sequence[str]
Ids = Sequence[Sequence[int]]


class PackedColumn(Protocol):
    """The values of a column in a micro-batch, as tensors."""

    def to(self, device: "torch.device") -> Self:
        """Return them on another device."""

    def pinned(self) -> Self:
        """Return them in page-locked memory."""


PackSentences = Callable[["IntArray", "IntArray"], PackedColumn]
"""Packs the values of some pairs, given the pairs and the lengths of their target sentences with their marks."""


@dataclass(frozen=True, slots=True)
class Column:
    """A value of each training pair. Its functions import nothing that data preparation does not need."""

    name: str
    """Also the ending of its files in a prepared corpus."""
    is_used: Callable[[DataConfig], bool]
    """Return whether the training text of a corpus has it."""
    settings: tuple[str, ...]
    """The settings under `data.` that name where it comes from."""
    fingerprint: Callable[[DataConfig], Mapping[str, object]]
    """Return what identifies the cells, if the source does not know them."""
    cells: Callable[[DataConfig, Iterator["Pair"], Iterator[Any] | None], Iterator["Pair"]]
    """Yield the training pairs with their cells at the end, given the cells if the source knows them."""
    line: Callable[[Any, DataConfig], str]
    """Return a cell as a line of text."""
    encode: Callable[["Tokenizer", tuple[Ids, Ids], tuple[Lines, Lines, Lines]], list[list[int]]]
    """Return the numbers (below 65,536) of each pair, given the ids of both sides, and the lines of sides and cells."""
    is_valid: Callable[["Pairs", "IntArray"], bool]
    """Return whether the stored numbers of some pairs can belong to them."""
    pack: str
    """`module:function` that returns a PackSentences, given the text, the pairs of a global batch and its labels."""


def columns_of(data: DataConfig) -> list[Column]:
    """Return the columns that the training text of a corpus has."""
    return [column for column in all_columns().values() if column.is_used(data)]


def all_columns() -> dict[str, Column]:
    """Return the columns of all features by name."""
    found = [imported(code) for feature in features().values() for code in feature.columns]
    return {column.name: column for column in found}
