"""Read and change the content of a SentencePiece model, which is a protocol buffer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from nmt.errors import UserError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Types of pieces; text is never split into unused ones."""
UNIGRAM, BPE = 1, 2
"""Types of models."""


class Piece(NamedTuple):
    """An entry of a vocabulary."""

    text: str
    score: float
    kind: int = NORMAL


def parsed(model: bytes, name: str = "the tokenizer") -> Any:
    """Return a model as a message of protocol buffers; errors call it `name`."""
    try:
        found = ModelProto.FromString(model)
        if all(isinstance(each.piece, str) for each in found.pieces):  # bytes are not valid text
            return found
    except DecodeError:
        pass
    raise UserError(f"{name} is damaged or not a SentencePiece model: restore it")


def read_pieces(model: bytes, name: str = "the tokenizer") -> list[Piece]:
    """Return the vocabulary of a model; errors call the model `name`."""
    return [Piece(each.piece, each.score, each.type) for each in parsed(model, name).pieces]


def model_type(model: bytes) -> int:
    """Return the type of a model: UNIGRAM, BPE or another."""
    return int(parsed(model).trainer_spec.model_type)


def with_pieces(model: bytes, pieces: Sequence[Piece]) -> bytes:
    """Return the model with another vocabulary."""
    changed = parsed(model)
    del changed.pieces[:]
    for text, score, kind in pieces:
        changed.pieces.add(piece=text, score=score, type=kind)
    changed.trainer_spec.vocab_size = len(pieces)
    return bytes(changed.SerializeToString())
