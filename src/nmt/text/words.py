"""Words: letters and digits with the marks on them, and which word pieces belong to which word between spaces.

In scripts without spaces, each character is a word.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from nmt.text.special import UNKNOWN_MARK, UNKNOWN_PIECE
from nmt.text.tokenizer import SPACE_MARK

_BASIC_PLANE = 0x10000
_LAST_MARK = 0x1FFFF


def _marks(start: int, stop: int) -> str:
    return "".join(each for each in map(chr, range(start, stop)) if unicodedata.category(each)[0] == "M")


_SCRIPTS_WITHOUT_SPACES = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u309f\u3100-\u312f\u31a0-\u31bf"  # hiragana and bopomofo; katakana spells foreign words, which stay whole
    "\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
_RARE_MARKS = rf"(?=[^\x00-\uffff])[{_marks(_BASIC_PLANE, _LAST_MARK + 1)}]"
"""A mark of a script beyond the basic plane. The set is slow to search, so few characters get past the look-ahead."""
_MARK = rf"(?:[{_marks(0, _BASIC_PLANE)}]|{_RARE_MARKS})"
"""A mark belongs to the letter before it, as in Hindi and in decomposed é, but is no \\w."""
WORD = re.compile(
    rf"(?:[^\W{_SCRIPTS_WITHOUT_SPACES}]+|{_MARK})+"
    rf"|(?=\w)[{_SCRIPTS_WITHOUT_SPACES}]{_MARK}*"
)  # fmt: skip
_BETWEEN_SPACES = re.compile(rf"[{_SCRIPTS_WITHOUT_SPACES}]{_MARK}*|[^\s{_SCRIPTS_WITHOUT_SPACES}]+")


def words_between_spaces(line: str) -> list[str]:
    """Return the words of a line with their punctuation; in scripts without spaces, each character is one."""
    return _BETWEEN_SPACES.findall(line)


class Word(NamedTuple):
    """A word, and the indices of its pieces."""

    text: str
    pieces: Sequence[int]


def match_words(pieces: Sequence[str], text: str) -> list[Word]:
    """Return the words of a text with their pieces; if they cannot be matched, the words that the pieces spell."""
    words, found = text.split(), pieces_of_words(pieces, text)
    if len(found) == len(words):
        return list(map(Word, words, found))
    groups = map(list, group_pieces(pieces))
    return [Word("".join(pieces[index] for index in group).replace(SPACE_MARK, ""), group) for group in groups]


def group_pieces(pieces: Sequence[str]) -> list[range]:
    """Return the indices of the pieces of each word; a word begins with the mark of a space, and has some text."""
    starts, has_text = [0], False
    for index, piece in enumerate(pieces):
        if piece.startswith(SPACE_MARK) and has_text:
            starts.append(index)
            has_text = False
        has_text = has_text or piece != SPACE_MARK
    if not has_text and len(starts) > 1:  # a space at the end
        starts.pop()
    return [range(start, end) for start, end in zip(starts, [*starts[1:], len(pieces)], strict=True) if end > start]


def pieces_of_words(pieces: Sequence[str], text: str) -> list[list[int]]:
    """Return the indices of the pieces of each word of a text, which spaces divide; none if they cannot be matched.

    If the text was truncated, its last words may have no pieces.
    """
    words, spelled = text.split(), list(map(_spelled, pieces))
    if not "".join(words).startswith("".join(spelled)):  # pieces of bytes, or a tokenizer that changes characters
        groups = [list(group) for group in group_pieces(pieces)]
        return groups if len(groups) == len(words) else []
    found: list[list[int]] = [[] for _ in words]
    ends = list(accumulate(map(len, words)))
    starts = accumulate(map(len, spelled), initial=0)
    for index, start in zip(range(len(pieces)), starts, strict=False):
        if words and start < ends[-1]:  # else a space at the end
            found[bisect_right(ends, start)].append(index)
    return found


def _spelled(piece: str) -> str:
    """Return what a piece adds to a text, without spaces."""
    return UNKNOWN_MARK if piece == UNKNOWN_PIECE else "".join(piece.replace(SPACE_MARK, "").split())


def spoken_pieces(pieces: Sequence[str], text: str) -> list[list[int]]:
    """Return the pieces of each word, without punctuation in words that have anything else.

    It says nothing of the word, and attention that is not needed anywhere goes to the full stop.
    """
    spoken = [any(map(str.isalnum, piece)) for piece in pieces]
    return [[index for index in word if spoken[index]] or word for word in pieces_of_words(pieces, text)]
