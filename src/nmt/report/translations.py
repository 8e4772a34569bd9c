"""Score translations one by one, and by length and rarest word of the sentence."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.report.run import Evaluated, Run
from nmt.text.lines import read_lines

LENGTHS = (5, 10, 15, 20, 30, 40, 60)
"""Upper ends of the buckets of source lengths, in words."""
FREQUENCIES = (0, 9, 99, 999)
"""Upper ends of the buckets of the rarest word's frequency in the training text."""
COUNTED = 1_000_000
"""Lines of the training text in which words are counted, from its start."""
MOST_CHARACTERS = 1_500_000
"""The most characters of a split's sentences in a page."""

Parts = list[str]
"""A line in segments that alternate between shared with the other line and not; the first may be empty."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A translation with its reference."""

    number: int
    """Its line, from 1."""
    source: str
    hypothesis: Parts
    reference: Parts
    chrf: float
    bleu: float


def sentences(evaluated: Evaluated) -> list[Sentence]:
    """Return every sentence with its own scores, in the order of the text."""
    bleu, chrf = BLEU(effective_order=True), CHRF()
    found = []
    lines = zip(evaluated.sources, evaluated.hypotheses, evaluated.references, strict=True)
    for number, (source, hypothesis, reference) in enumerate(lines, start=1):
        marked = mark_differences(hypothesis, reference)
        scores = [float(metric.sentence_score(hypothesis, [reference]).score) for metric in (chrf, bleu)]
        found.append(Sentence(number, source, *marked, *scores))
    return found


def mark_differences(left: str, right: str) -> tuple[Parts, Parts]:
    """Split both lines into the segments that they share and, between them, those that only one has."""
    words = [re.findall(r"\w+|[^\w\s]|\s+", line) for line in (left, right)]
    matcher = SequenceMatcher(None, words[0], words[1], autojunk=False)
    parts: tuple[Parts, Parts] = [""], [""]
    for operation, left_from, left_to, right_from, right_to in matcher.get_opcodes():
        texts = "".join(words[0][left_from:left_to]), "".join(words[1][right_from:right_to])
        same = operation == "equal" and not texts[0].isspace()  # the space between two changed words changes with them
        for side, text in zip(parts, texts, strict=True):
            _append(side, text, same=same)
    return parts


def _append(parts: Parts, text: str, *, same: bool) -> None:
    if not text:
        return
    if len(parts) % 2 == same:
        parts[-1] += text
    else:
        parts.append(text)


def shown(found: Sequence[Sentence]) -> list[Sentence]:
    """Return all sentences, or for a large split only the best, the middle and the worst."""
    ranked = sorted(found, key=lambda sentence: (sentence.chrf, -sentence.number))
    size = sum(map(_characters, ranked)) / max(len(ranked), 1)
    room = int(MOST_CHARACTERS / max(size, 1))
    if len(ranked) <= room:
        return list(found)
    third = room // 3
    middle = (len(ranked) - third) // 2
    chosen = {*range(third), *range(middle, middle + third), *range(len(ranked) - third, len(ranked))}
    return sorted((ranked[index] for index in chosen), key=lambda sentence: sentence.number)


def _characters(sentence: Sentence) -> int:
    return len(sentence.source) + sum(map(len, sentence.hypothesis)) + sum(map(len, sentence.reference))


def by_length(evaluated: Evaluated) -> list[dict[str, Any]]:
    """Return BLEU and chrF for each range of source lengths."""
    return _by(evaluated, [len(source.split()) for source in evaluated.sources], LENGTHS)


def by_frequency(evaluated: Evaluated, counts: Counter[str]) -> list[dict[str, Any]]:
    """Return BLEU and chrF by how often training saw the rarest word of the source."""
    rarest = [min((counts[word] for word in words(source)), default=0) for source in evaluated.sources]
    return _by(evaluated, rarest, FREQUENCIES)


def words(line: str) -> list[str]:
    """Return the words of a line in lower case."""
    return re.findall(r"\w+", line.lower())


def word_counts(run: Run, wanted: Iterable[str]) -> Counter[str]:
    """Count how often some source words occur in the training text."""
    known, counts = set(wanted), Counter[str]()
    for line in islice(read_lines(run.data_folder / f"train.{run.languages[0]}"), COUNTED):
        counts.update(known.intersection(words(line)))
    return counts


def _by(evaluated: Evaluated, values: Sequence[int], ends: Sequence[int]) -> list[dict[str, Any]]:
    rows = []
    metrics: dict[str, Metric] = {"BLEU": BLEU(), "chrF": CHRF()}
    for low, high in zip((-1, *ends), (*ends, None), strict=True):
        chosen = [index for index, value in enumerate(values) if low < value and (high is None or value <= high)]
        if chosen:
            hypotheses = [evaluated.hypotheses[index] for index in chosen]
            references = [evaluated.references[index] for index in chosen]
            scores = {name: metric.corpus_score(hypotheses, [references]).score for name, metric in metrics.items()}
            rows.append({"bucket": _range(low + 1, high), "sentences": len(chosen), **scores})
    return rows


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"{low:,}+"
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
