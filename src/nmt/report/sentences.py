"""Score translations sentence by sentence, and mark how they differ from the reference."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from markupsafe import Markup
from sacrebleu.metrics.chrf import CHRF

from nmt.report.run import Evaluated


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
    chrf, found = CHRF(), []
    lines = zip(evaluated.sources, evaluated.hypotheses, *evaluated.all_references, strict=True)
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
