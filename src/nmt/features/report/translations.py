"""Score translations sentence by sentence, and by length and rarest word of the source."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain, islice

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.chrf import CHRF

from nmt.data.corpora import split_languages, training_splits
from nmt.evaluation.bleu import make_bleu
from nmt.features.report.charts import Bucket
from nmt.features.report.run import Evaluated, Run
from nmt.text.lines import read_lines
from nmt.text.words import WORD, words_between_spaces

LENGTH_BUCKETS = (5, 10, 15, 20, 30, 40, 60)
"""Upper ends of the buckets of source lengths, in words; in scripts without spaces, each character counts as one."""
FREQUENCY_BUCKETS = (0, 9, 99, 999)
"""Upper ends of the buckets of the rarest word's frequency in the training text."""
COUNTED_LINES = 1_000_000
"""The number of lines at the start of the training text in which words are counted."""
MAX_CHARACTERS = 1_500_000
"""The largest number of characters that the sentences of a split have in a page."""

Segments = list[str]
"""A line compared with another one. Its segments alternate: shared with the other line, only in this line, shared, ...

The first segment may be empty.
"""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A translation with its scores, and the reference that is most like it."""

    number: int
    """Line number, from 1."""
    source: str
    hypothesis: Segments
    reference: Segments
    chrf: float
    bleu: float


def sentences(evaluated: Evaluated) -> list[Sentence]:
    """Score every sentence; return them in the order of the text."""
    bleu, chrf = make_bleu(evaluated.bleu_tokenizer, effective_order=True), CHRF()
    found = []
    lines = zip(evaluated.sources, evaluated.hypotheses, *evaluated.all_references, strict=True)
    for number, (source, hypothesis, *references) in enumerate(lines, start=1):
        marked = mark_differences(hypothesis, _closest(hypothesis, references, chrf))
        scores = [float(metric.sentence_score(hypothesis, references).score) for metric in (chrf, bleu)]
        found.append(Sentence(number, source, *marked, *scores))
    return found


def _closest(hypothesis: str, references: Sequence[str], chrf: CHRF) -> str:
    """Return the reference that is most like a translation."""
    if len(references) == 1:
        return references[0]
    return max(references, key=lambda each: float(chrf.sentence_score(hypothesis, [each]).score))


def mark_differences(left: str, right: str) -> tuple[Segments, Segments]:
    """Split two lines into the segments that they share and the segments that only one of them has."""
    words = [re.findall(r"\w+|[^\w\s]|\s+", line) for line in (left, right)]
    matcher = SequenceMatcher(None, words[0], words[1], autojunk=False)
    segments: tuple[Segments, Segments] = [""], [""]
    for operation, left_from, left_to, right_from, right_to in matcher.get_opcodes():
        texts = "".join(words[0][left_from:left_to]), "".join(words[1][right_from:right_to])
        same = operation == "equal" and not texts[0].isspace()  # the space between two changed words changes with them
        for line, text in zip(segments, texts, strict=True):
            _append(line, text, same=same)
    return segments


def _append(segments: Segments, text: str, *, same: bool) -> None:
    """Add text to the last segment if that is of the same kind, or else as a new segment."""
    if not text:
        return
    if len(segments) % 2 == same:
        segments[-1] += text
    else:
        segments.append(text)


def sentences_to_show(found: Sequence[Sentence]) -> list[Sentence]:
    """Return all sentences or, if they exceed MAX_CHARACTERS, the best, the middle and the worst."""
    ranked = sorted(found, key=lambda sentence: (sentence.chrf, -sentence.number))
    mean_size = sum(map(_characters, ranked)) / max(len(ranked), 1)
    max_sentences = int(MAX_CHARACTERS / max(mean_size, 1))
    if len(ranked) <= max_sentences:
        return list(found)
    third = max_sentences // 3
    middle = (len(ranked) - third) // 2
    chosen = {*range(third), *range(middle, middle + third), *range(len(ranked) - third, len(ranked))}
    return sorted((ranked[index] for index in chosen), key=lambda sentence: sentence.number)


def _characters(sentence: Sentence) -> int:
    return len(sentence.source) + sum(map(len, sentence.hypothesis)) + sum(map(len, sentence.reference))


def by_length(evaluated: Evaluated) -> list[Bucket]:
    """Return BLEU and chrF for each range of source lengths."""
    return _score_buckets(
        evaluated, [len(words_between_spaces(source)) for source in evaluated.sources], LENGTH_BUCKETS
    )


def by_frequency(evaluated: Evaluated, counts: Counter[str]) -> list[Bucket]:
    """Return BLEU and chrF by how often training saw the rarest word of the source."""
    rarest = [min((counts[word] for word in words(source)), default=0) for source in evaluated.sources]
    return _score_buckets(evaluated, rarest, FREQUENCY_BUCKETS)


def words(line: str) -> list[str]:
    """Return the words of a line in lower case."""
    found: list[str] = WORD.findall(line.lower())
    return found


def word_counts(run: Run, wanted: Iterable[str], split: str = "test") -> Counter[str]:
    """Count the training sentences, in the source language of a split, in which each of some words occurs."""
    known, counts, data = set(wanted), Counter[str](), run.config.data
    language = split_languages(data, split)[0]
    names = [each.name for each in training_splits(data) if each.languages[0] == language]
    lines = chain.from_iterable(read_lines(run.data_folder / f"{name}.{language}") for name in names)
    for line in islice(lines, COUNTED_LINES):
        counts.update(known.intersection(words(line)))
    return counts


def _score_buckets(evaluated: Evaluated, values: Sequence[int], ends: Sequence[int]) -> list[Bucket]:
    """Group sentences by their values into ranges with these upper ends; score each group that is not empty."""
    buckets = []
    metrics: dict[str, Metric] = {"BLEU": make_bleu(evaluated.bleu_tokenizer), "chrF": CHRF()}
    for low, high in zip((-1, *ends), (*ends, None), strict=True):
        chosen = [index for index, value in enumerate(values) if low < value and (high is None or value <= high)]
        if chosen:
            hypotheses = [evaluated.hypotheses[index] for index in chosen]
            references = [[lines[index] for index in chosen] for lines in evaluated.all_references]
            scores = {name: metric.corpus_score(hypotheses, references).score for name, metric in metrics.items()}
            buckets.append(Bucket(_range(low + 1, high), len(chosen), scores))
    return buckets


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"{low:,}+"
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
