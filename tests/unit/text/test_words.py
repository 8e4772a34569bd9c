"""Word pieces are assigned to the words of a text, as spaces divide it."""

import pytest

from nmt.text.tokenizer import Tokenizer
from nmt.text.words import pieces_of_words, spoken_pieces
from tests.unit.small_models import LINES, make_tokenizer


@pytest.mark.parametrize(
    ("pieces", "text", "expected"),
    [
        (["▁", "Ein", "▁", "▁", "H", "und", "▁"], "Ein  Hund ", [[0, 1], [2, 3, 4, 5]]),
        (["▁10\u00a00", "00"], "10\u00a0000", [[0], [1]]),  # a piece of two words counts for the first one
        (["▁a", "<0xF0>", "<0x9F>", "▁b"], "a😀 b", [[0, 1, 2], [3]]),
        (["▁a", "<unk>", "b"], "a ⁇ b", [[0], [1], [2]]),
        (["▁a", "<unk>", "b"], "a\tb", []),  # two words, which these pieces do not show
        (["▁a", "▁b"], "a b c d", [[0], [1], [], []]),  # truncated
        ([], "a", [[]]),
        (["▁"], " ", []),
    ],
)
def test_pieces_are_assigned_to_words(pieces: list[str], text: str, expected: list[list[int]]) -> None:
    assert pieces_of_words(pieces, text) == expected


def test_punctuation_counts_only_where_there_is_nothing_else() -> None:
    pieces = ["▁", "Hund", ",", "▁-", "▁(", "3", ")", "▁"]
    assert spoken_pieces(pieces, "Hund, - (3)") == [[1], [3], [5]]


def plain(tokenizer: Tokenizer, text: str) -> list[list[int]]:
    """Assign each piece to the word that the text before it, and it, end in."""
    ids = tokenizer.encode_source([text])[0]
    ends = [len(tokenizer.decode(ids[: end + 1]).split()) for end in range(len(ids))]
    return [[index for index, end in enumerate(ends) if end == word + 1] for word in range(len(text.split()))]


@pytest.mark.parametrize("text", [*LINES, "a", "the dogs  and the dog "])
def test_pieces_of_real_text_are_those_that_decoding_shows(text: str) -> None:
    tokenizer = make_tokenizer()
    pieces = tokenizer.source_pieces(tokenizer.encode_source([text])[0])
    assert pieces_of_words(pieces, text) == plain(tokenizer, text)
