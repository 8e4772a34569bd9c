"""Turn requests into token ids: how a translation begins, and the terms that must stand in it."""

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.decoding.glossary import Glossary
from nmt.decoding.request import Request
from nmt.errors import UserError
from nmt.text.special import UNK
from nmt.text.tokenizer import SPACE_MARK, Tokenizer, is_byte


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the translation of a sentence must contain, as token ids."""

    forced: tuple[int, ...] = ()
    """The tokens with which it begins."""
    last_word: tuple[int, ...] = ()
    """Tokens after these; others that spell the same text, or longer words with this beginning, may stand there."""
    word_ends: bool = False
    """Whether the word before must not go on."""
    terms: tuple[tuple[int, ...], ...] = ()
    """Sequences of tokens that must stand in it."""

    @property
    def beginning(self) -> tuple[int, ...]:
        """The tokens of its beginning as the tokenizer splits it."""
        return self.forced + self.last_word

    @property
    def tokens(self) -> int:
        """The number of tokens in its beginning and its terms."""
        return len(self.beginning) + sum(map(len, self.terms))


UNCONSTRAINED = Constraints()


class ConstraintEncoder:
    """Encodes the constraints of requests."""

    def __init__(self, tokenizer: Tokenizer, glossary: Glossary, max_tokens: int) -> None:
        """Add the terms of a glossary; no translation may have more than `max_tokens` tokens."""
        self._tokenizer = tokenizer
        self._glossary = glossary
        self._max_tokens = max_tokens
        self._terms: dict[str, tuple[int, ...]] = {}
        for term in glossary.targets:
            self._term(term)

    def encode(self, requests: Sequence[Request]) -> list[Constraints] | None:
        """Return the constraints of each request, or None if there are none."""
        terms = [(*request.terms, *self._glossary.find(request.text)) for request in requests]
        if not any(terms) and not any(request.beginning for request in requests):
            return None
        # without spaces at the end, which the tokenizer could make a word piece of their own
        beginnings = self._tokenizer.encode_target([request.beginning.rstrip() for request in requests])
        return [self._encode(*each) for each in zip(requests, beginnings, terms, strict=True)]

    def _encode(self, request: Request, tokens: list[int], terms: Sequence[str]) -> Constraints:
        """Return the constraints of a request, given the tokens of its beginning and its terms."""
        required = tuple(dict.fromkeys(map(self._term, terms)))
        room = self._max_tokens - 1 - sum(map(len, required))
        if room < 0:
            raise UserError(f"the terms of a line need more than {self._max_tokens - 1:,} tokens: give fewer terms")
        if len(tokens) > room:
            return Constraints(tuple(tokens[:room]), terms=required)
        if request.beginning[-1:].isspace():
            return Constraints(tuple(tokens), word_ends=bool(tokens), terms=required)
        start = self._start_of_last_word(tokens)
        return Constraints(tuple(tokens[:start]), tuple(tokens[start:]), terms=required)

    def _start_of_last_word(self, tokens: list[int]) -> int:
        """Return where the last word begins, or the end if it has characters that the vocabulary lacks."""
        pieces = self._tokenizer.target_pieces(tokens)
        start = max((place for place, piece in enumerate(pieces) if piece.startswith(SPACE_MARK)), default=0)
        lacks = UNK in tokens[start:] or any(map(is_byte, pieces[start:]))
        return len(tokens) if lacks else start

    def _term(self, term: str) -> tuple[int, ...]:
        """Return the tokens of a term."""
        if term not in self._terms:
            (tokens,) = self._tokenizer.encode_target([term])
            if not tokens or UNK in tokens:
                raise UserError(
                    f"the term {term!r} has characters that the model cannot write: write it otherwise, or leave it out"
                )
            self._terms[term] = tuple(tokens)
        return self._terms[term]
