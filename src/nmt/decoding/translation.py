"""What an engine returns: translations, and how probable they are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.decoding.detail import all_details

TOKENS = "tokens"
"""The name of the detail with the scores of tokens."""


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
    details: Mapping[str, Any] = field(default_factory=dict)
    """What was computed for it after the search, by name: see `nmt.decoding.detail`."""

    @property
    def tokens(self) -> tuple[ScoredToken, ...]:
        """Its tokens with their scores, if `translate` was asked for them."""
        found: tuple[ScoredToken, ...] = self.details.get(TOKENS, ())
        return found

    if not TYPE_CHECKING:  # so that a type checker still finds misspelt names

        def __getattr__(self, name: str) -> Any:
            """Return a detail that a feature computes; an empty one if the settings do not ask for it."""
            if name not in all_details():
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return self.details.get(name, ())


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
