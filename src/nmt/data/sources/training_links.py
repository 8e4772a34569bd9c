"""The word alignments of the training text, from a file with a line per pair or from the source itself."""

from collections.abc import Iterator
from pathlib import Path

from nmt.config.schema import DataConfig
from nmt.data.sources.source import Fingerprint, LinkedPair, Pair
from nmt.errors import UserError
from nmt.storage.files import checksum
from nmt.text.alignments import GoldAlignment, check_links, read_alignments


def alignments_file(name: str, setting: str) -> Path:
    """Return the file with alignments that a setting names."""
    path = Path(name).expanduser()
    if not path.is_file():
        raise UserError(f"{path} does not exist or is not a file: check {setting}.")
    return path


def given_alignments(config: DataConfig) -> Iterator[GoldAlignment]:
    """Yield the alignment of each training pair in the file that the settings name."""
    return read_alignments(alignments_file(config.train_alignments, "data.train_alignments"))


def alignments_fingerprint(config: DataConfig) -> Fingerprint:
    """Identify the alignments of the training text by content; those of the demo follow from its text."""
    if not config.train_alignments or config.source == "demo":
        return {}
    return {"alignments": checksum(alignments_file(config.train_alignments, "data.train_alignments"))}


def linked(pairs: Iterator[Pair], alignments: Iterator[GoldAlignment]) -> Iterator[Pair]:
    """Yield pairs with their alignments; refuse alignments that do not belong to them."""
    count = 0
    while True:
        pair, alignment = next(pairs, None), next(alignments, None)
        if pair is None or alignment is None:
            break
        count += 1
        try:
            check_links(alignment, *pair)
        except ValueError as error:
            raise UserError(
                f"data.train_alignments, line {count}, has {error}: align the text of data.train"
            ) from error
        yield LinkedPair.linking(pair, alignment)
    counts = [
        count + (last is not None) + sum(1 for _ in rest) for last, rest in ((alignment, alignments), (pair, pairs))
    ]
    if counts[0] != counts[1]:
        raise UserError(
            f"data.train_alignments has {counts[0]:,} lines, but data.train has {counts[1]:,} pairs: "
            "it needs one line per pair"
        )
