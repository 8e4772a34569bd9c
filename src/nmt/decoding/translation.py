"""What an engine returns: translations, and how probable they are."""

from dataclasses import dataclass
from typing import NamedTuple

from nmt.text.alignments import Link


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
