"""What is asked of an engine, and what it returns: requests, translations, and how probable they are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt.text.alignments import Link
from nmt.text.words import Word


def check_is_text(text: object) -> None:
    """Refuse everything but text."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.80} is no text but has the type {type(text).__name__}")


@dataclass(frozen=True, slots=True)
class Request:
    """A line to translate, and what its translation must contain."""

    text: str
    beginning: str = ""
    """The text with which the translation begins. Its last word may go on."""
    terms: tuple[str, ...] = ()
    """Words or phrases of the target language that must stand in the translation, besides those of the glossary."""

    def __post_init__(self) -> None:
        """Refuse other types, and a text in place of several terms: its letters would be terms."""
        for text in (self.text, self.beginning):
            check_is_text(text)
        if isinstance(self.terms, str):
            raise TypeError("terms are a tuple of texts, not a single text: terms=(text,)")


class ScoredToken(NamedTuple):
    """A token of a translation."""

    piece: str
    """The token as the vocabulary spells it."""
    log_probability: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """One translation of a line."""

    text: str
    score: float
    mean_log_probability: float = 0.0
    """The log-probability per token, EOS included."""
    tokens: tuple[ScoredToken, ...] = ()
    """Its tokens with their scores, if `translate` was asked for them."""
    alignment: tuple[Link, ...] = ()
    """The links between the words of the line and its own, if the settings ask for them."""


@dataclass(frozen=True, slots=True)
class Translation:
    """The translations of a line, best first. An empty line has one, which is empty."""

    candidates: list[Candidate]

    @property
    def text(self) -> str:
        """The best translation."""
        return self.candidates[0].text


class Likelihood(NamedTuple):
    """How probable a given translation is."""

    log_probability: float
    """Sum over its tokens."""
    tokens: int
    """Number of its tokens, EOS included."""


@dataclass(frozen=True, slots=True)
class WordProbability:
    """A word of a translation with its punctuation."""

    text: str
    probability: float


def word_probabilities(words: Sequence[Word], tokens: Sequence[ScoredToken]) -> list[WordProbability]:
    """Return the words of a translation; a word's probability is the product of those of its pieces."""
    return [
        WordProbability(word.text, math.exp(sum(tokens[index].log_probability for index in word.pieces)))
        for word in words
    ]
