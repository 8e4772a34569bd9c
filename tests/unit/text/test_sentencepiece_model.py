"""The files of SentencePiece models are read and written as the library does."""

import pytest
import sentencepiece

from nmt.errors import UserError
from nmt.text.sentencepiece_model import BPE, UNIGRAM, model_type, read_pieces, with_pieces
from tests.unit.small_models import learn

OLD = ["the small cat sees a dog", "a dog sees the cat", "cats see dogs and the small dog"] * 5


@pytest.mark.parametrize(("kind", "number"), [("bpe", BPE), ("unigram", UNIGRAM)])
def test_pieces_are_read_and_written_as_the_library_does(kind: str, number: int) -> None:
    model = learn(OLD, 45, kind)
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = read_pieces(model, "it")
    assert [piece.text for piece in pieces] == [library.id_to_piece(index) for index in range(len(pieces))]
    assert [piece.score for piece in pieces] == [library.get_score(index) for index in range(len(pieces))]
    assert model_type(model) == number
    written = sentencepiece.SentencePieceProcessor(model_proto=with_pieces(model, pieces))
    assert written.encode(OLD) == library.encode(OLD)


@pytest.mark.parametrize("damage", [b"", b"\x0a", b"\x0a\x05ab", b"\xff" * 12, b"\x0b\x00", b"\x0a\x02\x0a\x05"])
def test_damaged_models_are_refused_in_one_line(damage: bytes) -> None:
    if not damage:
        assert read_pieces(damage, "it") == []
        return
    with pytest.raises(UserError, match="it is damaged or not a SentencePiece model"):
        read_pieces(damage, "it")
