"""The word alignments of the training text as a column: links between words, and then between word pieces."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np

from nmt.config.data import DataConfig
from nmt.config.folders import expanded
from nmt.data.batches import IntArray
from nmt.data.columns import Column, Ids, Lines
from nmt.data.sources.source import Pair
from nmt.data.store import SOURCE, TARGET, Pairs
from nmt.errors import UserError
from nmt.storage.files import checksum
from nmt.text.alignments import GoldAlignment, Link, check_links, links_to_learn, read_alignments, read_gold, write_gold
from nmt.text.tokenizer import Tokenizer
from nmt.text.word_pieces import spoken_pieces

NAME = "alignments"
ALL = np.iinfo(np.int64).max
"""No limit to the numbers of a pair."""

Words = Sequence[Sequence[int]]
"""The pieces of each word of a sentence; no words if they could not be matched."""


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


def _file(data: DataConfig) -> str:
    return data.train_alignments


def _fingerprint(data: DataConfig) -> Mapping[str, object]:
    return {NAME: checksum(alignments_file(_file(data), "data.train_alignments"))}


def _with_alignments(data: DataConfig, pairs: Iterator[Pair], known: Iterator[GoldAlignment] | None) -> Iterator[Pair]:
    """Yield pairs with their alignments; refuse alignments that do not belong to them."""
    alignments = known or read_alignments(alignments_file(_file(data), "data.train_alignments"))
    lines = count = 0
    for pair, alignment in zip_longest(pairs, alignments):
        lines += alignment is not None
        count += pair is not None
        if pair is not None and alignment is not None:
            check_line("train", count, alignment, pair)
            yield (*pair, alignment)
    if lines != count:
        raise UserError(
            f"data.train_alignments has {lines:,} lines, but data.train has {count:,} pairs: it needs one line per pair"
        )


def _line(alignment: GoldAlignment, data: DataConfig) -> str:
    """Return an alignment in Pharaoh format; the tag of the corpus is a further word."""
    return write_gold(alignment.after(len(data.tag.split())))


def _encode(tokenizer: Tokenizer, ids: tuple[Ids, Ids], lines: tuple[Lines, Lines, Lines]) -> list[list[int]]:
    """Return the links between the pieces of each pair."""
    return [
        piece_links(
            links_to_learn(read_gold(alignment)),
            spoken_pieces(tokenizer.source_pieces(source_ids), source),
            spoken_pieces(tokenizer.target_pieces(target_ids), target),
        )
        for source_ids, target_ids, source, target, alignment in zip(*ids, *lines, strict=True)
    ]


def piece_links(links: Iterable[Link], source: Words, target: Words) -> list[int]:
    """Return the target piece and the source piece of each link, one after the other, in ascending order."""
    if not source or not target:
        return []
    found = {(said, read) for i, j in links for said in target[j] for read in source[i]}
    return [index for link in sorted(found) for index in link]


def _is_valid(text: Pairs, pairs: IntArray) -> bool:
    """Return whether the links of some pairs are between pieces that these have."""
    numbers, counts = text.gather(NAME, pairs, ALL)
    if (counts % 2).any():
        return False
    targets, sources = numbers.reshape(-1, 2).T
    limits = (np.repeat(text.gather(side, pairs, ALL)[1], counts // 2) for side in (SOURCE, TARGET))
    return not any((index >= limit).any() for index, limit in zip((sources, targets), limits, strict=True))


ALIGNMENTS = Column(
    NAME,
    is_used=lambda data: bool(_file(data)),
    settings=("train_alignments",),
    fingerprint=_fingerprint,
    cells=_with_alignments,
    line=_line,
    encode=_encode,
    is_valid=_is_valid,
    pack="nmt.data.links:pack",
)
