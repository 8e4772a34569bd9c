"""Read the pieces of a SentencePiece model, which is a protocol buffer, without a library for those.

A message is a sequence of fields. If a field that holds one value occurs again, the last value counts.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from nmt.errors import UserError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Types of pieces; text is never split into unused ones."""
UNIGRAM, BPE = 1, 2
"""Types of models."""
PIECES, TRAINER = 1, 2
"""Fields of a model."""
MODEL_TYPE = 3
"""The field with the type of the model in the settings of training."""
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""Ways in which a field is written."""

Field = tuple[int, int | bytes]
"""The number and the value of a field."""


class Piece(NamedTuple):
    """An entry of a vocabulary."""

    text: str
    score: float
    kind: int = NORMAL


def read_pieces(model: bytes, name: str) -> list[Piece]:
    """Return the vocabulary of a model; errors call the model `name`."""
    try:
        return [_piece(value) for number, value in fields(model) if number == PIECES]
    except (ValueError, KeyError, IndexError, TypeError, struct.error) as error:
        raise UserError(f"{name} is damaged or not a SentencePiece model: restore it") from error


def model_type(model: bytes) -> int:
    """Return the type of a model: UNIGRAM, BPE or another."""
    trainers = [value for number, value in fields(model) if number == TRAINER]
    types = [value for trainer in trainers for number, value in fields(_bytes(trainer)) if number == MODEL_TYPE]
    return int(types[-1]) if types else UNIGRAM


def _piece(message: int | bytes) -> Piece:
    found = dict(fields(_bytes(message)))
    score = struct.unpack("<f", _bytes(found.get(2, b"\0\0\0\0")))[0]
    return Piece(_bytes(found[1]).decode(), score, int(found.get(3, NORMAL)))


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise TypeError("a number in place of bytes")
    return value


def fields(message: bytes) -> Iterator[Field]:
    """Yield the fields of a message: numbers as int, all others as bytes."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, place = _varint(message, place)
            yield number, value
            continue
        if kind == LENGTH:
            size, place = _varint(message, place)
        else:
            size = {FIXED64: 8, FIXED32: 4}.get(kind, -1)
        if size < 0 or place + size > len(message):
            raise ValueError("a field is cut short or of an unknown kind")
        yield number, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")
