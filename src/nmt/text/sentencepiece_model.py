"""Read and change the pieces of a SentencePiece model, which is a protocol buffer, without a library for those.

A message is a sequence of fields. If a field that holds one value occurs again, the last value counts, so settings are
changed by appending them.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nmt.errors import UserError

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Types of pieces; text is never split into unused ones."""
UNIGRAM, BPE = 1, 2
"""Types of models."""
PIECES, TRAINER, NORMALIZER = 1, 2, 3
"""Fields of a model."""
MODEL_TYPE, VOCABULARY_SIZE, UNKNOWN_SURFACE, UNKNOWN_PIECE, BOS_PIECE, EOS_PIECE, PAD_PIECE = 3, 4, 44, 45, 46, 47, 48
"""Fields of the settings of training."""
CHARACTER_MAP, DUMMY_PREFIX, REMOVE_WHITESPACE = 2, 3, 4
"""Fields of the normaliser."""
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5

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
        return [_piece(value) for number, value in _fields(model) if number == PIECES]
    except (ValueError, KeyError, IndexError, TypeError, struct.error) as error:
        raise UserError(f"{name} is damaged or not a SentencePiece model: restore it") from error


def model_type(model: bytes) -> int:
    """Return the type of a model: UNIGRAM, BPE or another."""
    trainers = [value for number, value in _fields(model) if number == TRAINER]
    types = [value for trainer in trainers for number, value in _fields(_bytes(trainer)) if number == MODEL_TYPE]
    return int(types[-1]) if types else UNIGRAM


def with_pieces(model: bytes, pieces: Sequence[Piece]) -> bytes:
    """Return the model with another vocabulary."""
    others = b"".join(_written(number, value) for number, value in _fields(model) if number != PIECES)
    written = b"".join(_written(PIECES, _piece_bytes(piece)) for piece in pieces)
    return written + others + _written(TRAINER, _written(VOCABULARY_SIZE, len(pieces)))


def with_settings(model: bytes, group: int, settings: Mapping[int, int | bytes]) -> bytes:
    """Return the model with other settings of its training or its normaliser, by number of the field."""
    return model + _written(group, b"".join(_written(number, value) for number, value in settings.items()))


def _piece(message: int | bytes) -> Piece:
    fields = dict(_fields(_bytes(message)))
    score = struct.unpack("<f", _bytes(fields.get(2, b"\0\0\0\0")))[0]
    return Piece(_bytes(fields[1]).decode(), score, int(fields.get(3, NORMAL)))


def _piece_bytes(piece: Piece) -> bytes:
    score = b"\x15" + struct.pack("<f", piece.score)
    return _written(1, piece.text.encode()) + score + _written(3, piece.kind)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise TypeError("a number in place of bytes")
    return value


def _fields(message: bytes) -> Iterator[Field]:
    """Yield the fields of a message: numbers as int, all others as bytes."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, place = _varint(message, place)
            yield number, value
            continue
        if kind == _LENGTH:
            size, place = _varint(message, place)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}.get(kind, -1)
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


def _written(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint_bytes(number << 3 | _VARINT) + _varint_bytes(value)
    return _varint_bytes(number << 3 | _LENGTH) + _varint_bytes(len(value)) + value


def _varint_bytes(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
