"""What the translation of a sentence must contain: the beginning and the terms that a request names."""

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.decoding.translation import Request
from nmt.errors import UserError
from nmt.text.glossary import Glossary
from nmt.text.special import UNK
from nmt.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the translation of a sentence must contain, as token ids."""

    beginning: tuple[int, ...] = ()
    """The tokens with which it begins."""
    terms: tuple[tuple[int, ...], ...] = ()
    """Sequences of tokens that must stand in it."""

    @property
    def tokens(self) -> int:
        """The number of tokens in its beginning and its terms."""
        return len(self.beginning) + sum(map(len, self.terms))


UNCONSTRAINED = Constraints()


class ConstraintEncoder:
    """Encodes the constraints of requests."""

    def __init__(self, tokenizer: Tokenizer, glossary: Glossary, max_tokens: int) -> None:
        """Add the terms of a glossary; no translation may have more than `max_tokens` tokens."""
        self._tokenizer, self._find, self._max_tokens = tokenizer, glossary.find, max_tokens
        targets = list(dict.fromkeys(glossary.targets))
        encoded = self._tokens(targets) if targets else []
        self._glossary = {term: _checked(term, tokens) for term, tokens in zip(targets, encoded, strict=True)}

    def encode(self, requests: Sequence[Request]) -> list[Constraints] | None:
        """Return the constraints of each request, or None if there are none."""
        terms = [(*request.terms, *self._find(request.text)) for request in requests]
        if not any(terms) and not any(request.beginning for request in requests):
            return None
        # without spaces at the end, which the tokenizer could make a word piece of their own
        beginnings = self._tokens([request.beginning.rstrip() for request in requests])
        return [self._encode(*each) for each in zip(requests, beginnings, terms, strict=True)]

    def _encode(self, request: Request, tokens: list[int], terms: Sequence[str]) -> Constraints:
        """Return the constraints of a request, given the tokens of its beginning and its terms."""
        required = tuple(dict.fromkeys(map(self._term, terms)))
        room = self._max_tokens - 1 - sum(map(len, required))
        if room < 0:
            raise UserError(f"the terms of a line need more than {self._max_tokens - 1:,} tokens: give fewer terms")
        return Constraints(tuple(tokens[:room]), required)

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of texts that translations must contain, with spaces for rare white space as in sources."""
        return self._tokenizer.encode_target([self._tokenizer.with_spaces[1](text) for text in texts])

    def _term(self, term: str) -> tuple[int, ...]:
        """Return the tokens of a term."""
        return self._glossary.get(term) or _checked(term, self._tokens([term])[0])


def _checked(term: str, tokens: Sequence[int]) -> tuple[int, ...]:
    """Return the tokens of a term, unless the model cannot write it."""
    if not tokens or UNK in tokens:
        raise UserError(
            f"the term {term!r} has characters that the model cannot write: write it otherwise, or leave it out"
        )
    return tuple(tokens)
