"""Target: the filters of training text that is in development and test sets, beside plain versions of them."""

import math
import re
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from fuzz.campaign import Attempt
from fuzz.strategies import texts
from nmt.config.data import DataConfig
from nmt.data.filters import HeldOutPair
from nmt.features.text_overlap import sentences, word_runs

Pairs = list[tuple[str, str]]
LANGUAGES = ("en", "de")
WORDS = ("Cat", "cat", "the", "CAT", "dog", "straße", "STRASSE", ",", "é", "e\u0301", "1")


def overlaps(_: Path) -> Attempt:
    """Try development and training text: the pairs that are kept are those that plain versions keep."""

    def check(value: tuple[Pairs, Pairs, str, float, int]) -> None:
        held_out, pairs, how, share, words = value
        config = DataConfig(drop_overlap=how, overlap_share=share, overlap_words=words)
        text = [HeldOutPair(LANGUAGES, *pair) for pair in held_out]
        kept = sentences.judging(config, sentences.learn(config, text))(pairs)
        assert list(kept) == [not _is_known(pair, held_out, how) for pair in pairs]
        kept = word_runs.judging(config, word_runs.learn(config, text))(pairs)
        assert list(kept) == [not _has_runs(pair, held_out, share, words) for pair in pairs]

    pairs = st.lists(st.tuples(_sentences(), _sentences()), max_size=6)
    shares = st.sampled_from([0.01, 1 / 3, 0.5, 2 / 3, 1.0]) | st.floats(0.001, 1)
    return Attempt(st.tuples(pairs, pairs, st.sampled_from(["pair", "side"]), shares, st.integers(2, 4)), check)


def _sentences() -> SearchStrategy[str]:
    """Return a strategy for sentences that often have words in common."""
    return st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join) | texts()


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _compared(text: str) -> str | list[str]:
    return _words(text) or text.strip()


def _is_known(pair: tuple[str, str], held_out: Pairs, how: str) -> bool:
    same = [[_compared(one) == _compared(other) for one, other in zip(pair, each, strict=True)] for each in held_out]
    return any(all(each) if how == "pair" else any(each) for each in same)


def _has_runs(pair: tuple[str, str], held_out: Pairs, share: float, words: int) -> bool:
    for side, text in enumerate(pair):
        own = _runs(text, words)
        for each in held_out:
            others = _runs(each[side], words)
            if others and len(own & others) >= max(1, math.ceil(len(others) * share - 1e-9)):
                return True
    return False


def _runs(text: str, words: int) -> set[tuple[str, ...]]:
    found = _words(text)
    return {tuple(found[start : start + words]) for start in range(len(found) - words + 1)}
