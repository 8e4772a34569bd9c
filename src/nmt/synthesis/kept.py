"""Which answers of a teacher are good enough to train on, and which of several is the best."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

from nmt.config.tree import Config
from nmt.data.filters.overlap import HeldOut
from nmt.data.filters.pipeline import DUPLICATES, filters_of, judging
from nmt.decoding.risk import chrf
from nmt.evaluation.comet import comet_quality
from nmt.text.language import identified_code, language_identifier

MIN_LANGUAGE_PROBABILITY = 0.1
"""Used if the settings have none."""
LENGTH_RATIO, LENGTH_SLACK = 3, 30
"""One side may have this many times as many bytes as the other one, and this many more."""
BROKEN = re.compile(r"[\0-\x08\x0b-\x1f\x7f\ufffd\ud800-\udfff]")
"""Control characters, and what stands for bytes that are no text."""
MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|\{[^{}]*\}|%[ds]|&#?\w+;|```|\*\*")
REFUSAL = re.compile(
    r"(?i)\b(as an AI|language model|(cannot|can't|won't|unable to) (assist|translate|provide|help with th))"
)
COMMENT = re.compile(
    r"(?i)\n|\b(translat|note|explan|übersetz|hinweis|anmerkung|trad|перев|vertal|tłumacz)\w*[^:.]{0,40}:|翻[译譯訳].{0,9}[:：]"
    r"|^(sure|certainly|of course|here is|here's)\b.{0,60}:|\((note|lit)|^[\"“„«»‘「『][^\"”“«»’」』]*[\"”“«»’」』]$"
)
Fault = Callable[[str, str, str], str]
"""Returns what is wrong with an answer, given the line, the answer and why it ended; empty if nothing is."""


def fault_finder(config: Config) -> Fault:
    """Return what looks for the faults of models that chat, and then applies the filters of training text."""
    data, probability = config.data, config.data.min_language_probability
    if {identified_code(data.source_lang), identified_code(data.target_lang)} <= {*language_identifier().labels}:
        probability = probability or MIN_LANGUAGE_PROBABILITY
    data = replace(data, drop_copies=True, min_language_probability=probability)
    filters = [name for name in filters_of(data, "train") if name not in (DUPLICATES, "overlap")]
    judge = judging(filters, data, HeldOut())

    def fault(line: str, answer: str, end: str) -> str:
        def has_new(pattern: re.Pattern[str]) -> bool:
            return bool(pattern.search(answer)) and not pattern.search(line)

        shorter, longer = sorted(len(side.encode(errors="replace")) for side in (line, answer))
        checks = {
            "cut short": end == "length",
            "refusal": end in ("refusal", "content_filter") or has_new(REFUSAL),
            "empty": not answer,
            "markup": bool(BROKEN.search(answer)) or Counter(MARKUP.findall(line)) != Counter(MARKUP.findall(answer)),
            "comments": has_new(COMMENT),
            "length": longer > LENGTH_RATIO * shorter + LENGTH_SLACK,
        }
        found = next((name for name, is_wrong in checks.items() if is_wrong), "")
        return found or [*filters, ""][int(judge([(line, answer)])[0][0])]

    return fault


def best(good: Mapping[str, list[str]], comet: str) -> Iterator[tuple[str, str, float]]:
    """Yield each line, the best of its answers and its score: by this model of COMET, or by the mean chrF with all."""
    pairs = [(line, answer) for line, answers in good.items() for answer in answers]
    qualities = iter(comet_quality(comet, pairs)) if comet else None
    for line, answers in good.items():
        scores = list(islice(qualities, len(answers))) if qualities else chrf(answers).mean(1).tolist()
        yield line, answers[scores.index(max(scores))], max(scores)
