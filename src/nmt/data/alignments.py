"""The word alignments of pairs: links between words, and then between word pieces.

Those of the training text are the one column that it may have beside its two sides. A pair ends with its alignment,
which preparation writes as a line of a text file; the encoder turns the line into numbers, which the store keeps beside
the tokens.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from nmt.config.data import GENERATED, DataConfig
from nmt.config.folders import expanded
from nmt.data.sources.source import Pair
from nmt.errors import UserError
from nmt.text.alignments import GoldAlignment, Link, links_to_learn, read_gold, write_gold
from nmt.text.tokenizer import Tokenizer
from nmt.text.words import spoken_pieces

NAME = "alignments"
Words = Sequence[Sequence[int]]
"""The pieces of each word of a sentence; no words if they could not be matched."""


def given_file(data: DataConfig, split: str) -> Path | None:
    """Return the file with the alignments of a split that the settings name; None if they name none."""
    name = {"train": data.train_alignments, "test": data.test_alignments}.get(split, "")
    return expanded(name) if name and data.source != GENERATED else None


def aligned(split: str, pairs: Iterable[Pair], alignments: Iterable[GoldAlignment]) -> Iterator[Pair]:
    """Yield pairs of a split with their alignments at the end; refuse alignments that do not belong to the pairs."""
    lines = count = 0
    for pair, alignment in zip_longest(pairs, alignments):
        lines += alignment is not None
        count += pair is not None
        if pair is not None and alignment is not None:
            words = len(pair[0].split()), len(pair[1].split())
            for i, j in alignment.possible:
                if i >= words[0] or j >= words[1]:
                    raise UserError(
                        f"data.{split}_alignments, line {count}, has a link {i}-{j}, but the sentences have {words[0]} "
                        f"and {words[1]} words: align the text of data.{split}"
                    )
            yield (*pair, alignment)
    if lines != count:
        raise UserError(
            f"data.{split}_alignments has {lines:,} lines, but data.{split} has {count:,} pairs: it needs one line "
            "per pair"
        )


def alignment_line(alignment: GoldAlignment, data: DataConfig) -> str:
    """Return an alignment in Pharaoh format; the tag of the corpus is a further word."""
    return write_gold(alignment.after(len(data.tag.split())))


def encode_alignments(
    tokenizer: Tokenizer, ids: Iterable[Sequence[Sequence[int]]], lines: Iterable[Sequence[str]]
) -> list[list[int]]:
    """Return the links between the pieces of each pair, given the ids of both sides, and the lines of all files."""
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
