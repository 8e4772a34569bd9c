"""Turn Marian's tokenizer into SentencePiece models whose pieces are the rows of the word vectors.

Marian splits text with one SentencePiece model per language, and looks the pieces up in a vocabulary: vocab.json, which
both languages may share. Here the vocabulary of a model is its list of pieces, in the order of the special ids first.
So each model gets the whole vocabulary: its own pieces as they were, and the others as pieces that no text is split
into. A piece that the vocabulary lacks becomes a new one, with the vector of the unknown piece, as in Marian.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sentencepiece

from nmt.errors import UserError
from nmt.storage.files import read_json
from nmt.text.sentencepiece_model import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    Piece,
    parsed,
    read_pieces,
    with_pieces,
)

FETCH_AGAIN = "Fetch it again."
"""What to do about a damaged file of somebody else's model."""
OWN_KINDS = (NORMAL, USER_DEFINED, BYTE)
"""Types of pieces that text is split into."""
BOS_NAMES = ("<s>", "<start>")
"""Names for the piece with which translations begin, which Marian's vocabulary does not name."""
PROBES, PROBE_PIECES = 200, 12
"""Made-up lines, and their pieces, on which the old and the new model are compared."""


class Vocabulary(NamedTuple):
    """One side's vocabulary."""

    model: bytes
    """The SentencePiece model."""
    rows: list[int]
    """The row of Marian's matrix for each of our ids."""
    silent: list[bool]
    """Whether a piece is never generated, because its row belongs to another piece."""


class _Side(NamedTuple):
    """The files of one side."""

    folder: Path
    ids: Mapping[str, int]
    """Marian's vocabulary."""
    model: bytes
    pieces: Sequence[Piece]
    """The pieces of the SentencePiece model."""

    @property
    def lacking(self) -> list[str]:
        """The pieces of the SentencePiece model that the vocabulary lacks."""
        return [piece.text for piece in self.pieces if piece.kind in OWN_KINDS and piece.text not in self.ids]


def read_vocabularies(folder: Path, settings: Mapping[str, Any]) -> tuple[Vocabulary, Vocabulary]:
    """Return the vocabularies of the source and the target, given the content of config.json."""
    shared = not (folder / "target_vocab.json").is_file()
    source = _read_side(folder, "vocab.json", "source.spm", settings.get("vocab_size"))
    target_size = settings.get("decoder_vocab_size") or settings.get("vocab_size")
    target = _read_side(folder, "vocab.json" if shared else "target_vocab.json", "target.spm", target_size)
    unk, pad, eos = special = _special_names(folder)
    start = settings.get("decoder_start_token_id", settings.get("pad_token_id"))
    for side in (source, target):
        for name in special:
            if name not in side.ids:
                raise UserError(
                    f"{folder}: the vocabulary has no {name}, which tokenizer_config.json names: fetch it again"
                )
    if start not in target.ids.values():
        raise UserError(f"{folder / 'config.json'}: decoder_start_token_id={start} is no row of the vocabulary")
    extra = list(dict.fromkeys([*source.lacking, *target.lacking]))
    begins = start if shared else next(source.ids[name] for name in (*BOS_NAMES, pad) if name in source.ids)
    return (
        _vocabulary(source, (unk, pad, begins, eos), extra if shared else source.lacking),
        _vocabulary(target, (unk, pad, start, eos), extra if shared else target.lacking),
    )


def _special_names(folder: Path) -> list[str]:
    """Return Marian's names of the unknown piece, the padding and the end mark."""
    file = folder / "tokenizer_config.json"
    named = read_json(file, FETCH_AGAIN) if file.is_file() else {}
    found = []
    for name, usual in (("unk_token", "<unk>"), ("pad_token", "<pad>"), ("eos_token", "</s>")):
        value = named.get(name, usual) if isinstance(named, dict) else usual
        found.append(str(value.get("content", usual) if isinstance(value, dict) else value))
    return found


def _read_side(folder: Path, vocabulary: str, model: str, size: object) -> _Side:
    for name in (vocabulary, model):
        if not (folder / name).is_file():
            raise UserError(f"{folder} has no {name}: fetch all files of the model")
    ids = read_json(folder / vocabulary, FETCH_AGAIN)
    rows = set(ids.values()) if isinstance(ids, dict) and all(isinstance(row, int) for row in ids.values()) else set()
    if not rows or rows != set(range(len(ids))) or len(ids) != size:
        raise UserError(
            f"{folder / vocabulary} must name each of the {size} rows of the word vectors that config.json "
            "promises: fetch both again"
        )
    content = (folder / model).read_bytes()
    pieces = read_pieces(content, str(folder / model))
    if not any(piece.kind in OWN_KINDS for piece in pieces):
        raise UserError(f"{folder / model} has no pieces: fetch it again")
    return _Side(folder, ids, content, pieces)


def _vocabulary(side: _Side, special: tuple[str, str, int, str], extra: Sequence[str]) -> Vocabulary:
    """Return a side's vocabulary: special pieces, the others in Marian's order, then those that it lacks."""
    unk, pad, start, eos = special
    names = {row: name for name, row in side.ids.items()}
    first = names[start]
    if first in (unk, pad, eos):
        first = next((name for name in BOS_NAMES if name not in side.ids and name not in extra), "")
        if not first:
            raise UserError(f"{side.folder}: the vocabulary contains {' and '.join(BOS_NAMES)}: import another model")
    heads, rows = [unk, pad, first, eos], [side.ids[unk], side.ids[pad], start, side.ids[eos]]
    rest = sorted(set(names) - set(rows))
    # a row that two special pieces share is generated as the end, else as the unknown piece, else as the beginning
    silent = [False, rows[1] in (rows[0], *rows[2:]), rows[2] in (rows[0], rows[3]), False]
    model = _model(side, [*heads, *(names[row] for row in rest), *extra], heads)
    return Vocabulary(
        model, [*rows, *rest, *[rows[0]] * len(extra)], [*silent, *[False] * len(rest), *[True] * len(extra)]
    )


def _model(side: _Side, texts: Sequence[str], heads: Sequence[str]) -> bytes:
    """Return the SentencePiece model with a piece for each row, which splits text as before."""
    if texts == [piece.text for piece in side.pieces]:
        return side.model
    own = {piece.text: piece for piece in side.pieces if piece.kind in OWN_KINDS}
    special = [Piece(heads[0], 0.0, UNKNOWN), *(Piece(name, 0.0, CONTROL) for name in heads[1:])]
    pieces = [*special, *(own.get(text) or _foreign(text) for text in texts[len(heads) :])]
    try:
        changed = parsed(with_pieces(side.model, pieces))
        spec = changed.trainer_spec
        spec.unk_piece, spec.pad_piece, spec.bos_piece, spec.eos_piece = heads
        spec.unk_surface = ""
        model = bytes(changed.SerializeToString())
        before, after = (sentencepiece.SentencePieceProcessor(model_proto=each) for each in (side.model, model))
    except UnicodeEncodeError as error:
        raise UserError(f"{side.folder}: a name in the vocabulary is not valid text: fetch it again") from error
    except RuntimeError as error:
        raise UserError(f"{side.folder}: SentencePiece cannot load the tokenizer: fetch it again") from error
    generator, known = np.random.default_rng(1), list(own)
    for _ in range(PROBES):
        chosen = generator.choice(len(known), PROBE_PIECES)
        line = "".join(known[index] for index in chosen).replace("\u2581", " ")
        if before.encode(line, out_type=str) != after.encode(line, out_type=str):
            raise UserError(f"{side.folder}: {line!r} would be split in another way: import another model")
    return model


def _foreign(text: str) -> Piece:
    """Return the piece for a row that the SentencePiece model does not have.

    Marian splits off a language tag such as >>deu<< at the beginning of a sentence; the space that SentencePiece adds
    there belongs to it.
    """
    if text.startswith(">>") and text.endswith("<<"):
        return Piece(f"\u2581{text}", 0.0, USER_DEFINED)
    return Piece(text, 0.0, UNUSED)
