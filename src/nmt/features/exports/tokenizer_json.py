"""A SentencePiece model of BPE as tokenizer.json, which Hugging Face's tokenizers and transformers.js read."""

from collections.abc import Iterator, Sequence
from typing import Any

from nmt.compute.packages import import_optional
from nmt.config.schema import Config
from nmt.errors import UserError
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

Json = dict[str, Any]


def check_tokenizer_is_expressible(target: str, settings: Config, tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer that tokenizer.json cannot express, in one line that names the setting."""
    model = tokenizer.contents[0]
    kinds = {piece.kind for piece in read_pieces(model, "the tokenizer")}
    refused = (
        ("tokenizer.joint=false", "true", len(tokenizer.files) > 1),
        (f"tokenizer.model_type={settings.tokenizer.model_type}", "bpe", model_type(model) != BPE),
        (
            f"tokenizer.normalization={settings.tokenizer.normalization}",
            "identity",
            settings.tokenizer.normalization != "identity",
        ),
        ("pieces that stand for bytes", "a vocabulary without them", BYTE in kinds),
        ("tags before sentences", "a vocabulary without them", USER_DEFINED in kinds),
    )
    for what, known, holds in refused:
        if holds:
            raise UserError(
                f"export.target={target} cannot express {what}, only {known}: "
                "choose another export.target, or train with a tokenizer that it can express"
            )


def tokenizer_json(model: bytes) -> Json:
    """Return the content of tokenizer.json for a SentencePiece model of BPE that does not normalise its text."""
    pieces = read_pieces(model, "the tokenizer")
    special = [_special(index, piece) for index, piece in enumerate(pieces) if piece.kind in (CONTROL, UNKNOWN)]
    end = pieces[EOS].text
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": SPACE_MARK},
                {"type": "Replace", "pattern": {"String": " "}, "content": SPACE_MARK},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": end, "type_id": 0}}],
            "pair": [
                {"Sequence": {"id": "A", "type_id": 0}},
                {"Sequence": {"id": "B", "type_id": 0}},
                {"SpecialToken": {"id": end, "type_id": 0}},
            ],
            "special_tokens": {end: {"id": end, "ids": [EOS], "tokens": [end]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": SPACE_MARK}, "content": " "},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": pieces[UNK].text,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": False,
            "vocab": {piece.text: index for index, piece in enumerate(pieces)},
            "merges": list(_merges(pieces)),
        },
    }


def tokenizer_config(model: bytes, max_tokens: int) -> Json:
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


def check_tokenizer_json(file: str, tokenizer: Tokenizer, lines: Sequence[str]) -> None:
    """Check that Hugging Face's tokenizers split and join lines with a tokenizer.json as our tokenizer does."""
    theirs = import_optional("tokenizers").Tokenizer.from_file(file)
    for line, ids in zip(lines, tokenizer.encode_source(lines), strict=True):
        if theirs.encode(line).ids != [*ids, EOS]:
            raise UserError(f"the export was deleted: its tokenizer.json does not split {line!r} as our tokenizer does")
        known = [piece for piece in ids if piece != UNK]  # an unknown piece is dropped
        if theirs.decode(known) != tokenizer.decode(known):
            raise UserError(f"the export was deleted: its tokenizer.json does not join {line!r} as our tokenizer does")


def _special(index: int, piece: Piece) -> Json:
    """Return the entry of a token that is not text."""
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": index, "content": piece.text, **flags}


def _merges(pieces: Sequence[Piece]) -> Iterator[list[str]]:
    """Yield the pairs of pieces that make another piece, those with the best score first, as SentencePiece merges."""
    known = {piece.text for piece in pieces if piece.kind == NORMAL}
    for piece in sorted(pieces, key=lambda each: -each.score):
        if piece.kind == NORMAL:
            for cut in range(1, len(piece.text)):
                left, right = piece.text[:cut], piece.text[cut:]
                if left in known and right in known:
                    yield [left, right]
