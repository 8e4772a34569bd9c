"""What one score of a test set hides: scores of its parts, and the share of translations with typical faults."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nmt.evaluation.bleu import make_bleu
from nmt.evaluation.metric import Translated, corpus_score
from nmt.evaluation.metrics import make_chrf
from nmt.text.special import UNKNOWN_MARK
from nmt.text.words import words_between_spaces

LENGTHS = (10, 20, 30, 50)
"""Upper ends of the groups of source lengths, in words; in scripts without spaces, each character counts as one."""
REPEATED_WORDS, MAX_REPETITIONS = 4, 2
"""A translation whose most frequent sequence of four words occurs this much more often than the source's repeats
itself (Guerreiro et al., 2023)."""
UNRELATED_CHRF = 10.0
"""A translation with a lower chrF has nearly nothing in common with its reference."""


@dataclass(frozen=True, slots=True)
class Part:
    """The scores of a part of a test set."""

    label: str
    """By what the set is divided: length, or a label such as origin or domain."""
    value: str
    sentences: int
    bleu: float
    chrf: float


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of the translations with typical faults, which need no model to be found."""

    length_ratio: float
    """Words of all translations divided by those of the references, of several the one of the closest length."""
    copied: float
    """Equal to their source, and not to a reference."""
    repetitive: float
    """Repeat a sequence of words that the source does not repeat: one kind of hallucination."""
    unrelated: float
    """Have nearly nothing in common with a reference: the other kind."""
    hallucinated: float
    """Repetitive or unrelated, and not copied."""
    unknown: float
    """Contain a word that the vocabulary cannot write."""


def parts(text: Translated, labels: Mapping[str, Sequence[str]]) -> list[Part]:
    """Score each part of a test set: by the length of the source, and by each label."""
    columns = {**labels, "length": [length_group(len(words_between_spaces(source))) for source in text.sources]}
    metrics = make_bleu(text.tokenizer), make_chrf()
    found = []
    for label, column in columns.items():
        for value in sorted(set(column), key=_in_order):
            chosen = [index for index, each in enumerate(column) if each == value]
            hypotheses, *references = (
                [lines[index] for index in chosen] for lines in (text.hypotheses, *text.references)
            )
            bleu, chrf = (corpus_score(metric, hypotheses, references).score for metric in metrics)
            found.append(Part(label, value, len(chosen), bleu, chrf))
    return found


def length_group(words: int) -> str:
    """Return the group of a length in words, such as 11-20."""
    for lower, upper in zip((0, *LENGTHS), LENGTHS, strict=False):
        if words <= upper:
            return f"{lower + 1}-{upper}"
    return f"{LENGTHS[-1] + 1}-"


def _in_order(value: str) -> tuple[int, str]:
    """Return a key that sorts groups of lengths by number, and anything else as text."""
    start = value.partition("-")[0]
    return (int(start) if start.isdecimal() else 0, value)


def rates(text: Translated) -> Rates:
    """Return the shares of translations with typical faults."""
    chrf, count = make_chrf(), len(text.hypotheses)
    copied, repetitive, unrelated = [], [], []
    for source, hypothesis, *theirs in zip(text.sources, text.hypotheses, *text.references, strict=True):
        copied.append(hypothesis == source and hypothesis not in theirs)
        repetitive.append(_repetitions(hypothesis) - _repetitions(source) >= MAX_REPETITIONS)
        unrelated.append(hypothesis not in theirs and chrf.sentence_score(hypothesis, theirs).score < UNRELATED_CHRF)
    hallucinated = [(one or other) and not copy for one, other, copy in zip(repetitive, unrelated, copied, strict=True)]
    words = [_words(line) for line in text.hypotheses]
    reference_words = sum(_closest_length(each, theirs) for each, *theirs in zip(words, *text.references, strict=True))
    return Rates(
        length_ratio=sum(words) / max(1, reference_words),
        copied=sum(copied) / count,
        repetitive=sum(repetitive) / count,
        unrelated=sum(unrelated) / count,
        hallucinated=sum(hallucinated) / count,
        unknown=sum(UNKNOWN_MARK in line for line in text.hypotheses) / count,
    )


def _words(line: str) -> int:
    return len(words_between_spaces(line))


def _closest_length(words: int, references: Sequence[str]) -> int:
    """Return the length of a reference that is closest to that of a translation, the shorter of two, as in BLEU."""
    return min((abs(length - words), length) for length in map(_words, references))[1]


def _repetitions(line: str) -> int:
    """Return how often the most frequent sequence of four words occurs."""
    words = words_between_spaces(line)
    sequences = Counter(
        tuple(words[start : start + REPEATED_WORDS]) for start in range(len(words) - REPEATED_WORDS + 1)
    )
    return max(sequences.values(), default=0)
