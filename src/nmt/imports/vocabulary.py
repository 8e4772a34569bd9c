"""Turn Marian's tokenizer into SentencePiece models whose pieces are the rows of the word vectors.

Marian splits text with one SentencePiece model per language, and looks the pieces up in a vocabulary: vocab.json, which
both languages may share. Here the vocabulary of a model is its list of pieces, in the order of the special ids first.
So each model gets the whole vocabulary: its own pieces as they were, and the others as pieces that no text is split
into. A piece that the vocabulary lacks becomes a new one, with the vector of the unknown piece, as in Marian.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmt.errors import UserError
from nmt.storage.files import read_json
from nmt.text.sentencepiece_model import (
    BPE,
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    Piece,
    model_type,
    parsed,
    read_pieces,
    with_pieces,
)
from nmt.text.special import BOS, EOS, PAD, UNK
from nmt.text.tokenizer import SPACE_MARK

UNK_NAME, PAD_NAME, BOS_NAME, EOS_NAME = "<unk>", "<pad>", "<s>", "</s>"
"""Marian's names of the special pieces. Its vocabulary need not have BOS_NAME, with which our translations begin."""


class Vocabulary(NamedTuple):
    """One side's vocabulary."""

    model: bytes
    """The SentencePiece model."""
    rows: list[int]
    """The row of Marian's matrix for each of our ids."""

    @property
    def silent(self) -> list[bool]:
        """Whether each piece is never generated, because its row belongs to another piece.

        A row that several pieces share is generated as the end, else as the unknown piece, else as the beginning.
        """
        owners = dict(zip(reversed(self.rows), reversed(range(len(self.rows))), strict=True))
        owners |= {self.rows[index]: index for index in (PAD, BOS, UNK, EOS)}
        return [owners[row] != index for index, row in enumerate(self.rows)]


class _Side(NamedTuple):
    """The files of one side."""

    file: Path
    """The SentencePiece model."""
    model: bytes
    ids: Mapping[str, int]
    """Marian's vocabulary."""
    own: Mapping[str, Piece]
    """The pieces that text is split into."""


def read_vocabularies(folder: Path, marian: Mapping[str, Any]) -> tuple[Vocabulary, Vocabulary]:
    """Return the vocabularies of source and target, given the content of config.json."""
    shared = not (folder / "target_vocab.json").is_file()
    sizes = marian.get("vocab_size"), marian.get("decoder_vocab_size") or marian.get("vocab_size")
    source = _read_side(folder / "vocab.json", folder / "source.spm", sizes[0])
    target = _read_side(folder / ("vocab.json" if shared else "target_vocab.json"), folder / "target.spm", sizes[1])
    start = marian.get("decoder_start_token_id", marian.get("pad_token_id"))
    if start not in target.ids.values():
        raise UserError(f"{folder / 'config.json'}: decoder_start_token_id={start} is no row of the vocabulary")
    begins = start if shared else source.ids.get(BOS_NAME, source.ids[PAD_NAME])  # the source has no beginning
    lacking = [[text for text in side.own if text not in side.ids] for side in (source, target)]
    if shared:
        lacking = [list(dict.fromkeys([*lacking[0], *lacking[1]]))] * 2
    return _vocabulary(source, begins, lacking[0]), _vocabulary(target, start, lacking[1])


def read_object(file: Path) -> dict[str, Any]:
    """Read a JSON object of somebody else's model."""
    found = read_json(file, "Fetch it again.") if file.is_file() else None
    if not isinstance(found, dict):
        raise UserError(f"{file} is missing or no JSON object: fetch all files of a Marian model again")
    return found


def _read_side(vocabulary: Path, file: Path, size: object) -> _Side:
    ids = read_object(vocabulary)
    are_rows = all(isinstance(row, int) for row in ids.values()) and {*ids.values()} == {*range(len(ids))}
    if not are_rows or len(ids) != size or not {UNK_NAME, PAD_NAME, EOS_NAME} <= ids.keys():
        raise UserError(
            f"{vocabulary} must name each of the {size} rows of the word vectors that config.json promises, with "
            f"{UNK_NAME}, {PAD_NAME} and {EOS_NAME} among them: fetch both again"
        )
    if not file.is_file():
        raise UserError(f"{file} is missing: fetch all files of a Marian model again")
    model = file.read_bytes()
    own = {each.text: each for each in read_pieces(model, str(file)) if each.kind in (NORMAL, USER_DEFINED, BYTE)}
    return _Side(file, model, ids, own)


def _vocabulary(side: _Side, start: int, extra: Sequence[str]) -> Vocabulary:
    """Return a side's vocabulary: special pieces, the others in Marian's order, then those that it lacks."""
    names = {row: name for name, row in side.ids.items()}
    first = names[start]
    if first in (UNK_NAME, PAD_NAME, EOS_NAME):
        first = BOS_NAME if BOS_NAME not in side.ids and BOS_NAME not in extra else f"<{BOS_NAME}>"
    rows = [side.ids[UNK_NAME], side.ids[PAD_NAME], start, side.ids[EOS_NAME]]
    rest = sorted(names.keys() - set(rows))
    model = _model(side, [UNK_NAME, PAD_NAME, first, EOS_NAME], [*(names[row] for row in rest), *extra])
    return Vocabulary(model, [*rows, *rest, *[rows[UNK]] * len(extra)])


def _model(side: _Side, heads: Sequence[str], others: Sequence[str]) -> bytes:
    """Return the SentencePiece model with a piece for each row, which splits text as before."""
    if [*heads, *others] == [piece.text for piece in read_pieces(side.model)]:
        return side.model
    pieces = [Piece(heads[0], 0.0, UNKNOWN), *(Piece(name, 0.0, CONTROL) for name in heads[1:])]
    pieces += [side.own.get(text) or _foreign(text) for text in others]
    if model_type(side.model) == BPE and any(piece.kind == UNUSED for piece in pieces):
        raise UserError(
            f"{side.file}: BPE would merge text into pieces of the other language: import a model with a vocabulary "
            "for each language"
        )
    try:
        changed = parsed(with_pieces(side.model, pieces))
        spec = changed.trainer_spec
        spec.unk_piece, spec.pad_piece, spec.bos_piece, spec.eos_piece = heads
        spec.unk_surface = ""
        return bytes(changed.SerializeToString())
    except UnicodeEncodeError as error:
        raise UserError(f"{side.file}: a name in its vocabulary is not valid text: fetch it again") from error


def _foreign(text: str) -> Piece:
    """Return the piece for a row that the SentencePiece model does not have.

    Marian splits off a language tag such as >>deu<< at the beginning of a sentence; the space that SentencePiece adds
    there belongs to it.
    """
    if text.startswith(">>") and text.endswith("<<"):
        return Piece(f"{SPACE_MARK}{text}", 0.0, USER_DEFINED)
    return Piece(text, 0.0, UNUSED)
