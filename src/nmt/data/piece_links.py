"""Word alignments as links between word pieces."""

from collections.abc import Iterable, Sequence

from nmt.text.alignments import Link, links_to_learn, read_gold
from nmt.text.tokenizer import Tokenizer
from nmt.text.word_pieces import spoken_pieces

Words = Sequence[Sequence[int]]
"""The pieces of each word of a sentence; no words if they could not be matched."""


def encode_alignments(
    tokenizer: Tokenizer, ids: tuple[list[list[int]], list[list[int]]], lines: Sequence[Sequence[str]]
) -> list[list[int]]:
    """Return the links between the pieces of each pair.

    Args:
        tokenizer: Its vocabularies spell the pieces.
        ids: The ids of the source sentences and of the target sentences.
        lines: The source lines, the target lines, and their word alignments in Pharaoh format.
    """
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
