"""The word alignments of the training text, from a file with a line per pair or from the source itself."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from nmt.data.sources.source import LinkedPair, Pair
from nmt.errors import UserError
from nmt.text.alignments import GoldAlignment, check_links


def alignments_file(name: str, setting: str) -> Path:
    """Return the file with alignments that a setting names."""
    path = Path(name).expanduser()
    if not path.is_file():
        raise UserError(f"{path} does not exist or is not a file: check {setting}.")
    return path


def check_line(split: str, number: int, alignment: GoldAlignment, pair: Pair) -> None:
    """Refuse a line of a split's alignments that does not belong to its pair."""
    try:
        check_links(alignment, *pair)
    except ValueError as error:
        raise UserError(
            f"data.{split}_alignments, line {number}, has {error}: align the text of data.{split}"
        ) from error


def linked(pairs: Iterator[Pair], alignments: Iterator[GoldAlignment]) -> Iterator[Pair]:
    """Yield pairs with their alignments; refuse alignments that do not belong to them."""
    lines = count = 0
    for pair, alignment in zip_longest(pairs, alignments):
        lines += alignment is not None
        count += pair is not None
        if pair is not None and alignment is not None:
            check_line("train", count, alignment, pair)
            yield LinkedPair.linking(pair, alignment)
    if lines != count:
        raise UserError(
            f"data.train_alignments has {lines:,} lines, but data.train has {count:,} pairs: it needs one line per pair"
        )
