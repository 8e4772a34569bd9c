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
from nmt.text.special import BOS
from nmt.text.tokenizer import SPACE_MARK

UNK_NAME, PAD_NAME, BOS_NAME, EOS_NAME = "<unk>", "<pad>", "<s>", "</s>"
"""Marian's names of the special pieces. Its vocabulary need not have BOS_NAME, with which our translations begin."""


class Vocabulary(NamedTuple):
    """One side's vocabulary."""

    model: bytes
    """The SentencePiece model."""
    rows: list[int]
    """The row of Marian's matrix for each of our ids."""
    silent: list[bool]
    """Whether each piece is never generated, because its row belongs to another piece."""


def read_vocabularies(folder: Path, marian: Mapping[str, Any]) -> tuple[Vocabulary, Vocabulary]:
    """Return the vocabularies of source and target, given the content of config.json."""
    shared, size = not (folder / "target_vocab.json").is_file(), marian.get("vocab_size")
    sources = _read_rows(folder / "vocab.json", size)
    targets = sources if shared else _read_rows(folder / "target_vocab.json", marian.get("decoder_vocab_size") or size)
    start = marian.get("decoder_start_token_id", marian.get("pad_token_id"))
    if start not in targets.values():
        raise UserError(f"{folder / 'config.json'}: decoder_start_token_id={start} is no row of the vocabulary")
    begins = start if shared else sources.get(BOS_NAME, sources[PAD_NAME])  # the source has no beginning
    own = [_own_pieces(folder / name) for name in ("source.spm", "target.spm")]
    lacking = [
        [text for text in pieces if text not in rows] for pieces, rows in zip(own, (sources, targets), strict=True)
    ]
    if shared:
        lacking = [list(dict.fromkeys([*lacking[0], *lacking[1]]))] * 2
    return (
        _vocabulary(folder / "source.spm", own[0], sources, begins, lacking[0]),
        _vocabulary(folder / "target.spm", own[1], targets, start, lacking[1]),
    )


def read_object(file: Path) -> dict[str, Any]:
    """Read a JSON object of somebody else's model."""
    found = read_json(file, "Fetch it again.") if file.is_file() else None
    if not isinstance(found, dict):
        raise UserError(f"{file} is missing or no JSON object: fetch all files of a Marian model again")
    return found


def _read_rows(file: Path, size: object) -> dict[str, int]:
    """Return the row of the matrix for each piece."""
    rows = read_object(file)
    are_rows = all(isinstance(row, int) for row in rows.values()) and {*rows.values()} == {*range(len(rows))}
    if not are_rows or len(rows) != size or not {UNK_NAME, PAD_NAME, EOS_NAME} <= rows.keys():
        raise UserError(
            f"{file} must name each of the {size} rows of the word vectors that config.json promises, with "
            f"{UNK_NAME}, {PAD_NAME} and {EOS_NAME} among them: fetch both again"
        )
    return rows


def _own_pieces(file: Path) -> dict[str, Piece]:
    """Return the pieces that a SentencePiece model splits text into."""
    if not file.is_file():
        raise UserError(f"{file} is missing: fetch all files of a Marian model again")
    pieces = read_pieces(file.read_bytes(), str(file))
    return {each.text: each for each in pieces if each.kind in (NORMAL, USER_DEFINED, BYTE)}


def _vocabulary(
    file: Path, own: Mapping[str, Piece], ids: Mapping[str, int], start: int, extra: Sequence[str]
) -> Vocabulary:
    """Return a side's vocabulary: special pieces, the others in Marian's order, then those that it lacks."""
    names = {row: name for name, row in ids.items()}
    first, is_shared = names[start], names[start] in (UNK_NAME, PAD_NAME, EOS_NAME)
    if is_shared:
        first = BOS_NAME if BOS_NAME not in ids and BOS_NAME not in extra else f"<{BOS_NAME}>"
    special = [ids[UNK_NAME], ids[PAD_NAME], start, ids[EOS_NAME]]
    rows = [*special, *sorted(names.keys() - set(special))]
    texts = [UNK_NAME, PAD_NAME, first, EOS_NAME, *(names[row] for row in rows[len(special) :]), *extra]
    silent = [index == BOS and is_shared for index in range(len(rows))] + [True] * len(extra)
    return Vocabulary(_model(file, own, texts), [*rows, *[ids[UNK_NAME]] * len(extra)], silent)


def _model(file: Path, own: Mapping[str, Piece], texts: Sequence[str]) -> bytes:
    """Return the SentencePiece model with these pieces, of which the first four are special; it splits text as before.

    Marian splits off a language tag such as >>deu<< at the beginning of a sentence; the space that SentencePiece adds
    there belongs to it.
    """
    model = file.read_bytes()
    if [*texts] == [piece.text for piece in read_pieces(model)]:
        return model
    pieces = [Piece(text, 0.0, CONTROL if index else UNKNOWN) for index, text in enumerate(texts[:4])]
    for text in texts[4:]:
        is_tag = text.startswith(">>") and text.endswith("<<")
        foreign = Piece(f"{SPACE_MARK}{text}", 0.0, USER_DEFINED) if is_tag else Piece(text, 0.0, UNUSED)
        pieces.append(own.get(text, foreign))
    if model_type(model) == BPE and any(piece.kind == UNUSED for piece in pieces):
        raise UserError(
            f"{file}: BPE would merge text into pieces of the other language: import a model with a vocabulary for "
            "each language"
        )
    try:
        changed = parsed(with_pieces(model, pieces))
        spec = changed.trainer_spec
        spec.unk_piece, spec.pad_piece, spec.bos_piece, spec.eos_piece = texts[:4]
        spec.unk_surface = ""
        return bytes(changed.SerializeToString())
    except UnicodeEncodeError as error:
        raise UserError(f"{file}: a name in its vocabulary is not valid text: fetch it again") from error
