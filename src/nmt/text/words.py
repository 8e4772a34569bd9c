"""Which word pieces belong to which word between spaces."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from nmt.text.special import UNKNOWN_MARK, UNKNOWN_PIECE
from nmt.text.tokenizer import SPACE_MARK


class Word(NamedTuple):
    """A word, and the indices of its pieces."""

    text: str
    pieces: Sequence[int]


def match_words(pieces: Sequence[str], text: str) -> list[Word]:
    """Return the words of a text with their pieces; if they cannot be matched, the words that the pieces spell."""
    words, found = text.split(), pieces_of_words(pieces, text)
    if len(found) == len(words):
        return list(map(Word, words, found))
    return [
        Word("".join(pieces[index] for index in group).replace(SPACE_MARK, ""), group)
        for group in _group_pieces(pieces)
    ]


def pieces_of_words(pieces: Sequence[str], text: str) -> list[list[int]]:
    """Return the indices of the pieces of each word of a text, which spaces divide; none if they cannot be matched.

    If the text was truncated, its last words may have no pieces.
    """
    words, spelled = text.split(), list(map(_spelled, pieces))
    if not "".join(words).startswith("".join(spelled)):  # pieces of bytes, or a tokenizer that changes characters
        groups = _group_pieces(pieces)
        return groups if len(groups) == len(words) else []
    found: list[list[int]] = [[] for _ in words]
    ends = list(accumulate(map(len, words)))
    starts = accumulate(map(len, spelled), initial=0)
    for index, start in zip(range(len(pieces)), starts, strict=False):
        if words and start < ends[-1]:  # else a space at the end
            found[bisect_right(ends, start)].append(index)
    return found


def spoken_pieces(pieces: Sequence[str], text: str) -> list[list[int]]:
    """Return the pieces of each word, without punctuation in words that have anything else.

    It says nothing of the word, and attention that is not needed anywhere goes to the full stop.
    """
    spoken = [any(map(str.isalnum, piece)) for piece in pieces]
    return [[index for index in word if spoken[index]] or word for word in pieces_of_words(pieces, text)]


def _group_pieces(pieces: Sequence[str]) -> list[list[int]]:
    """Return the indices of the pieces of each word; a word begins with the mark of a space, and has some text."""
    groups: list[list[int]] = []
    has_text = True
    for index, piece in enumerate(pieces):
        if not groups or (piece.startswith(SPACE_MARK) and has_text):
            groups.append([])
            has_text = False
        groups[-1].append(index)
        has_text = has_text or piece != SPACE_MARK
    return groups if has_text or len(groups) < 2 else groups[:-1]  # without a space at the end


def _spelled(piece: str) -> str:
    """Return what a piece adds to a text, without spaces."""
    return UNKNOWN_MARK if piece == UNKNOWN_PIECE else "".join(piece.replace(SPACE_MARK, "").split())
