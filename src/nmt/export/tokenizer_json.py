"""A SentencePiece model of BPE as tokenizer.json, which Hugging Face's tokenizers and transformers.js read."""

from collections.abc import Iterator, Sequence
from typing import Any

from nmt.config.tree import Config
from nmt.export.target import refuse_tokenizer
from nmt.packages import import_optional
from nmt.text.sentencepiece_model import (
    BPE,
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    USER_DEFINED,
    Piece,
    model_type,
    read_pieces,
)
from nmt.text.special import EOS, PAD, UNK
from nmt.text.tokenizer import SPACE_MARK, Tokenizer


def check_tokenizer(target: str, settings: Config, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer that tokenizer.json cannot express, in one line that names the setting."""
    model, chosen = tokenizer.contents[0], settings.tokenizer
    kinds = {piece.kind for piece in read_pieces(model, "the tokenizer")}
    refused = (
        ("tokenizer.joint=false", "true", len(tokenizer.files) > 1),
        (f"tokenizer.model_type={chosen.model_type}", "bpe", model_type(model) != BPE),
        ("pieces that stand for bytes", "a vocabulary without them", BYTE in kinds),
        ("tags before sentences", "a vocabulary without them", USER_DEFINED in kinds),
    )
    for what, known, holds in refused:
        if holds:
            raise refuse_tokenizer(target, what, known)


def as_fast_tokenizer(model: bytes) -> Any:
    """Return Hugging Face's tokenizer for a SentencePiece model of BPE that does not normalise its text."""
    library = import_optional("tokenizers")
    normalizers, decoders = library.normalizers, library.decoders
    pieces = read_pieces(model, "the tokenizer")
    end = pieces[EOS].text
    found = library.Tokenizer(
        library.models.BPE(
            {piece.text: index for index, piece in enumerate(pieces)},
            list(_merges(pieces)),
            unk_token=pieces[UNK].text,
            fuse_unk=True,
        )
    )
    found.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE_MARK), normalizers.Replace(" ", SPACE_MARK)])
    found.decoder = decoders.Sequence([decoders.Replace(SPACE_MARK, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    found.post_processor = library.processors.TemplateProcessing(single=f"$A {end}", special_tokens=[(end, EOS)])
    special = [piece.text for piece in pieces if piece.kind in (CONTROL, UNKNOWN)]
    found.add_special_tokens([library.AddedToken(text, normalized=False) for text in special])
    return found


def tokenizer_config(model: bytes, max_tokens: int) -> dict[str, object]:
    """Return the content of tokenizer_config.json."""
    pieces = read_pieces(model, "the tokenizer")
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": pieces[UNK].text,
        "eos_token": pieces[EOS].text,
        "pad_token": pieces[PAD].text,
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_tokens,
    }


def _merges(pieces: Sequence[Piece]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of pieces that make another piece, those with the best score first, as SentencePiece merges."""
    known = {piece.text for piece in pieces if piece.kind == NORMAL}
    for piece in sorted(pieces, key=lambda each: -each.score):
        if piece.kind == NORMAL:
            for cut in range(1, len(piece.text)):
                left, right = piece.text[:cut], piece.text[cut:]
                if left in known and right in known:
                    yield left, right
