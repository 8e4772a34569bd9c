"""White space of sentences to translate that models know little of."""

from collections.abc import Sequence

WHITE_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))


def rare_spaces(pieces: Sequence[str]) -> dict[int, str]:
    """Return a table that makes spaces of the white space that was rare in the training text, given the vocabulary.

    It is rare, as tabs and no-break spaces usually are, if no piece of several characters has it.
    """
    usual = set("".join(piece for piece in pieces if len(piece) > 1))
    return {ord(each): " " for each in WHITE_SPACE if each not in usual}


def with_single_spaces(line: str, rare: dict[int, str]) -> str:
    """Return a line without rare white space, without spaces at its ends, and with single ones elsewhere."""
    return " ".join(filter(None, line.translate(rare).split(" ")))
