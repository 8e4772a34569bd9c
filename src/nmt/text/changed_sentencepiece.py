"""Change a SentencePiece model: a library for features, which the core does not use.

Of several fields that hold one value, the last one counts, so settings are changed by appending them.
"""

import struct
from collections.abc import Mapping, Sequence

from nmt.text.sentencepiece_model import LENGTH, PIECES, TRAINER, VARINT, Piece, fields

NORMALIZER = 3
"""The field of a model with the settings of its normaliser."""
VOCABULARY_SIZE, UNKNOWN_SURFACE, UNKNOWN_PIECE, BOS_PIECE, EOS_PIECE, PAD_PIECE = 4, 44, 45, 46, 47, 48
"""Fields of the settings of training."""
CHARACTER_MAP, DUMMY_PREFIX, REMOVE_WHITESPACE = 2, 3, 4
"""Fields of the normaliser."""


def with_pieces(model: bytes, pieces: Sequence[Piece]) -> bytes:
    """Return the model with another vocabulary."""
    others = b"".join(_written(number, value) for number, value in fields(model) if number != PIECES)
    written = b"".join(_written(PIECES, _piece_bytes(piece)) for piece in pieces)
    return written + others + _written(TRAINER, _written(VOCABULARY_SIZE, len(pieces)))


def with_settings(model: bytes, group: int, settings: Mapping[int, int | bytes]) -> bytes:
    """Return the model with other settings of its training or its normaliser, by number of the field."""
    return model + _written(group, b"".join(_written(number, value) for number, value in settings.items()))


def _piece_bytes(piece: Piece) -> bytes:
    score = b"\x15" + struct.pack("<f", piece.score)
    return _written(1, piece.text.encode()) + score + _written(3, piece.kind)


def _written(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint_bytes(number << 3 | VARINT) + _varint_bytes(value)
    return _varint_bytes(number << 3 | LENGTH) + _varint_bytes(len(value)) + value


def _varint_bytes(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
