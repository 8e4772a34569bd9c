"""BPE-dropout compared with SentencePiece, and with a plain implementation."""

import numpy as np
import pytest
import sentencepiece

from nmt.config.data import TokenizerConfig
from nmt.data.noise import Merges, bpe_dropout
from nmt.demo.source import draw
from nmt.text.sentencepiece_model import USER_DEFINED, Piece, read_pieces
from nmt.text.train_tokenizer import train
from tests.unit.data.noise import plain


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return ["", *(each.pair[1] for each in draw(1, 60, 1, 1)["train"]), "日本 ünknown日 x"]


@pytest.fixture(scope="module")
def model(lines: list[str]) -> bytes:
    return train(iter(lines[1:-1] * 5), 300, TokenizerConfig(vocab_size=150))


@pytest.fixture(scope="module")
def processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def noised(pieces: list[Piece], ids: list[list[int]], share: float) -> list[list[int]]:
    return plain.lists(bpe_dropout(plain.sentences_of(ids), Merges.of(pieces), share, np.random.default_rng(1)))


def test_without_dropout_the_pieces_are_those_of_sentencepiece(
    model: bytes, processor: sentencepiece.SentencePieceProcessor, lines: list[str]
) -> None:
    ids = processor.encode(lines)
    characters = [[processor.piece_to_id(each) for each in "".join(processor.id_to_piece(line))] for line in ids[:-1]]
    assert noised(read_pieces(model), ids, 0.0) == ids
    assert noised(read_pieces(model), characters, 0.0) == ids[:-1]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
def test_pieces_are_those_of_the_plain_algorithm(
    model: bytes, processor: sentencepiece.SentencePieceProcessor, lines: list[str], share: float
) -> None:
    ids = processor.encode(lines)
    found = noised(read_pieces(model), ids, share)
    assert found == plain.bpe_dropout(processor, ids, share, np.random.default_rng(1))
    assert found != ids
    assert [processor.decode(line) for line in found] == [processor.decode(line) for line in ids]


PIECES = [
    Piece("?", 0, 2),
    Piece("a", -9.0),
    Piece("b", -9.0),
    Piece("ab", -1.0),
    Piece("ba", -2.0),
    Piece("aba", -3.0),
]


def test_special_pieces_and_pieces_without_characters_are_not_split() -> None:
    pieces = [*PIECES, Piece("ac", -4.0), Piece("</s>", 0, 3), Piece("<0x0A>", 0, 6), Piece("▁<bt>", 0, USER_DEFINED)]
    ids = [[9, 0, 6, 7, 8, 3, 0]]
    assert noised(pieces, ids, 0.0) == ids
    assert noised(pieces, [[], []], 0.5) == [[], []]
