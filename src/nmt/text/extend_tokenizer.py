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
    models = list(zip(old.contents, learned.contents, strict=True))[: len(old.models)]
    return Tokenizer(*(_extended(before, other, size, name) for before, other in models))


def _extended(old: bytes, learned: bytes, size: int, name: str) -> bytes:
    pieces, kind = read_pieces(old), model_type(old)
    reason = ""
    if kind != model_type(learned) or kind not in (UNIGRAM, BPE):
        reason = "its model type is not tokenizer.model_type: choose another one, or training.init_vocabulary=new"
    elif size <= len(pieces):
        reason = (
            f"it has {len(pieces)} pieces, and tokenizer.vocab_size={size} is not more: raise it, or set "
            "training.init_vocabulary=old"
        )
    if reason:
        raise UserError(f"the vocabulary of {name} cannot be extended, because {reason}")
    known = {piece.text for piece in pieces}
    new = [each for each in read_pieces(learned) if each.kind in (NORMAL, USER_DEFINED) and each.text not in known]
    # stable: tags and characters first, then the order of the learned model
    new.sort(key=lambda piece: piece.kind == NORMAL and len(piece.text) > 1)
    new = new[: size - len(pieces)]
    if kind == BPE:  # scores are the negative order of the merges, which must come after the old ones
        lowest = min(piece.score for piece in pieces)
        new = [Piece(piece.text, lowest - 1 - order, piece.kind) for order, piece in enumerate(new)]
    return with_pieces(old, [*pieces, *new])


def compositions(old: bytes, new: bytes) -> list[list[int]]:
    """Return the ids of the old pieces that each piece of a new model consists of: itself if old, none if unknown."""
    known = {piece.text: index for index, piece in enumerate(read_pieces(old))}
    exact = parsed(old)  # splits the inside of a word as it stands
    exact.normalizer_spec.precompiled_charsmap = b""
    exact.normalizer_spec.add_dummy_prefix = exact.normalizer_spec.remove_extra_whitespaces = False
    processor = sentencepiece.SentencePieceProcessor(model_proto=exact.SerializeToString())
    found = []
    for index, piece in enumerate(read_pieces(new)):
        if index in (UNK, PAD, BOS, EOS):
            found.append([index])
        elif piece.text in known:
            found.append([known[piece.text]])
        else:
            ids = [] if piece.kind == BYTE else processor.encode(piece.text.replace(SPACE_MARK, " "), out_type=int)
            found.append([each for each in ids if each != UNK])
    return found
