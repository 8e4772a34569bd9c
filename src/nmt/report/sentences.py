"""Score translations sentence by sentence, mark how they differ from the reference, and show the attention of one."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from markupsafe import Markup
from sacrebleu.metrics.chrf import CHRF

from nmt.decoding.attention import KINDS, compute_attention
from nmt.errors import UserError
from nmt.model.interface import TranslationModel
from nmt.report.run import Evaluated
from nmt.text.tokenizer import SPACE_MARK, Tokenizer

MIN_PIECES, MAX_PIECES = 4, 31
"""The range of word pieces that the longer side of a sentence with its attention may have, without marks."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A translation with its score, and the reference that is most like it."""

    number: int
    """Line number, from 1."""
    source: str
    hypothesis: str
    reference: str
    chrf: float


def sentences(evaluated: Evaluated) -> list[Sentence]:
    """Score every sentence; return them in the order of the text."""
    chrf, found, text = CHRF(), [], evaluated.text
    lines = zip(text.untagged_sources, evaluated.hypotheses, *text.all_references, strict=True)
    for number, (source, hypothesis, *references) in enumerate(lines, start=1):
        closest = max(references, key=lambda each: float(chrf.sentence_score(hypothesis, [each]).score))
        score = float(chrf.sentence_score(hypothesis, references).score)
        found.append(Sentence(number, source, hypothesis, closest, score))
    return found


def worst_and_best(found: Sequence[Sentence], count: int) -> tuple[list[Sentence], list[Sentence]]:
    """Return the sentences with the lowest chrF, and those with the highest, in this order; none is in both."""
    ranked = sorted(found, key=lambda sentence: (sentence.chrf, sentence.number))
    return ranked[:count], ranked[count:][::-1][:count]


def mark_differences(left: str, right: str) -> tuple[Markup, Markup]:
    """Mark the words that only the left line has as deleted, and those that only the right line has as inserted."""
    words: list[list[str]] = [re.findall(r"\w+|[^\w\s]|\s+", line) for line in (left, right)]
    lines = [Markup(""), Markup("")]
    matcher = SequenceMatcher(None, words[0], words[1], autojunk=False)
    for operation, left_from, left_to, right_from, right_to in matcher.get_opcodes():
        texts = "".join(words[0][left_from:left_to]), "".join(words[1][right_from:right_to])
        for side, (text, tag) in enumerate(zip(texts, ("del", "ins"), strict=True)):
            shared = operation == "equal" or not text
            lines[side] += text if shared else Markup("<{0}>{1}</{0}>").format(tag, text)
    return lines[0], lines[1]


def attention(
    found: Sequence[Sentence], model: TranslationModel, tokenizer: Tokenizer, tag: str = ""
) -> dict[str, Any]:
    """Return the attention of the first sentence that is neither too short nor too long to draw.

    The model reads the sentence with the tag of its corpus, as it did to translate it.
    The script of the page reads the weights in base64, one byte per weight; 255 means 1.
    """
    for sentence in found:
        source = f"{tag} {sentence.source}" if tag else sentence.source
        sides = *tokenizer.encode_input([source]), *tokenizer.encode_target([sentence.hypothesis])
        if MIN_PIECES <= max(map(len, sides)) <= MAX_PIECES:
            break
    else:
        raise UserError(f"no sentence and translation have {MIN_PIECES} to {MAX_PIECES} word pieces")
    computed, kinds = compute_attention(model, tokenizer, source, sentence.hypothesis), {}
    for kind in KINDS:
        weights, queries, keys = computed.of_kind(kind)
        kinds[kind] = {
            "layers": len(weights),
            "queries": [piece.replace(SPACE_MARK, "·") for piece in queries],
            "keys": [piece.replace(SPACE_MARK, "·") for piece in keys],
            "weights": base64.b64encode(np.round(255 * weights).astype(np.uint8).tobytes()).decode(),
        }
    return {"heads": computed.encoder.shape[1], "kinds": kinds}
