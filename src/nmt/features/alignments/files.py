"""Files with a word alignment per pair."""

from pathlib import Path

from nmt.config.folders import expanded
from nmt.data.sources.source import Pair
from nmt.errors import UserError
from nmt.text.alignments import GoldAlignment, check_links


def alignments_file(name: str, setting: str) -> Path:
    """Return the file with alignments that a setting names."""
    path = expanded(name)
    if not path.is_file():
        raise UserError(f"{path} does not exist or is not a file: check {setting}.")
    return path


def check_line(split: str, number: int, alignment: GoldAlignment, pair: Pair) -> None:
    """Refuse a line of a split's alignments that does not belong to its pair."""
    try:
        check_links(alignment, pair[0], pair[1])
    except ValueError as error:
        raise UserError(
            f"data.{split}_alignments, line {number}, has {error}: align the text of data.{split}"
        ) from error
