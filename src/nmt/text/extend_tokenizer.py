"""Extend a vocabulary by the pieces of another, and relate the pieces of two vocabularies."""

import sentencepiece

from nmt.errors import UserError
from nmt.text.sentencepiece_model import (
    BPE,
    BYTE,
    NORMAL,
    UNIGRAM,
    USER_DEFINED,
    Piece,
    model_type,
    parsed,
    read_pieces,
    with_pieces,
)
from nmt.text.special import BOS, EOS, PAD, UNK
from nmt.text.tokenizer import SPACE_MARK, Tokenizer


def extend(old: Tokenizer, learned: Tokenizer, size: int, name: str) -> Tokenizer:
    """Return the old tokenizer with pieces of one that was learned from other text, up to `size` pieces per model.

    Old pieces keep their ids. All characters of the new text come first, so that none of it is unknown. Errors call the
    old tokenizer `name`.
    """
    models = list(zip(old.contents, learned.contents, strict=True))[: len(old.files)]
    return Tokenizer(*(_extended(before, other, size, name) for before, other in models))


def _extended(old: bytes, learned: bytes, size: int, name: str) -> bytes:
    kind = model_type(old)
    if kind != model_type(learned) or kind not in (UNIGRAM, BPE):
        raise UserError(
            f"the vocabulary of {name} cannot be extended, because its model type is not that of "
            "tokenizer.model_type: choose another one, or training.init_vocabulary=new"
        )
    pieces = read_pieces(old, name)
    if size <= len(pieces):
        raise UserError(
            f"the vocabulary of {name} cannot be extended: it has {len(pieces)} pieces, and tokenizer.vocab_size="
            f"{size} is not more: raise it, or set training.init_vocabulary=old"
        )
    known = {piece.text for piece in pieces}
    learned_pieces = [piece for piece in read_pieces(learned, name) if piece.kind in (NORMAL, USER_DEFINED)]
    new = [piece for piece in learned_pieces if piece.text not in known]
    # stable: tags and characters first, then the order of the learned model
    new.sort(key=lambda piece: piece.kind == NORMAL and len(piece.text) > 1)
    new = new[: size - len(pieces)]
    if kind == BPE:  # scores are the negative order of the merges, which must come after the old ones
        lowest = min((piece.score for piece in pieces), default=0.0)
        new = [Piece(piece.text, lowest - 1 - order, piece.kind) for order, piece in enumerate(new)]
    return with_pieces(old, [*pieces, *new])


def compositions(old: bytes, new: bytes, name: str) -> list[list[int]]:
    """Return the ids of the old pieces that each new piece consists of: itself if it is old, nothing if unknown.

    The models are the contents of SentencePiece's files; errors call them `name`.
    """
    known = {piece.text: index for index, piece in enumerate(read_pieces(old, name))}
    exact = parsed(old)  # splits the inside of a word as it stands
    exact.normalizer_spec.precompiled_charsmap = b""
    exact.normalizer_spec.add_dummy_prefix = exact.normalizer_spec.remove_extra_whitespaces = False
    processor = sentencepiece.SentencePieceProcessor(model_proto=exact.SerializeToString())
    found = []
    for index, piece in enumerate(read_pieces(new, name)):
        if index in (UNK, PAD, BOS, EOS):
            found.append([index])
        elif piece.text in known:
            found.append([known[piece.text]])
        else:
            ids = [] if piece.kind == BYTE else processor.encode(piece.text.replace(SPACE_MARK, " "), out_type=int)
            found.append([each for each in ids if each != UNK])
    return found
