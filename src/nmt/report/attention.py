"""The attention weights of a sentence, for the script of the page."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from nmt.decoding.attention import KINDS, Attention
from nmt.report.sentences import Sentence
from nmt.text.tokenizer import SPACE_MARK, Tokenizer

MIN_PIECES, MAX_PIECES = 4, 31
"""The range of word pieces that the longer side of the drawn sentence may have, without marks."""


def choose_sentence(found: Sequence[Sentence], tokenizer: Tokenizer) -> Sentence | None:
    """Return the first sentence that is neither too short nor too long to draw."""
    for sentence in found:
        sides = *tokenizer.encode_input([sentence.source]), *tokenizer.encode_target([sentence.hypothesis])
        if MIN_PIECES <= max(map(len, sides)) <= MAX_PIECES:
            return sentence
    return None


def encode(each: Attention) -> dict[str, Any]:
    """Return the weights as the script reads them: in base64, one byte per weight; 255 means 1."""
    kinds = {}
    for kind in KINDS:
        weights, queries, keys = each.of_kind(kind)
        kinds[kind] = {
            "layers": len(weights),
            "queries": [piece.replace(SPACE_MARK, "·") for piece in queries],
            "keys": [piece.replace(SPACE_MARK, "·") for piece in keys],
            "weights": base64.b64encode(np.round(255 * weights).astype(np.uint8).tobytes()).decode(),
        }
    return {"heads": each.encoder.shape[1], "kinds": kinds}
