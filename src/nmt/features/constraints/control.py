"""What is asked of translations: their beginnings, and the terms that must stand in them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.decoding.beam import Choose, NextTokenScorer
from nmt.decoding.constraints import Constraints
from nmt.decoding.control import FORCES, Control, SearchBatch, SearchSetup
from nmt.decoding.request import Request
from nmt.errors import UserError
from nmt.features.constraints.beginnings import force_prefixes
from nmt.features.constraints.settings import terms_file
from nmt.features.constraints.terms import RequiredTerms, tokens_after_word
from nmt.text.special import UNK
from nmt.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from nmt.terms.glossary import Glossary


def constraint_control(setup: SearchSetup) -> Control:
    """Return what keeps the constraints of requests, which any search may have."""
    file = terms_file(setup.config)
    encoder = setup.once(
        ("terms", file, setup.max_tokens), lambda: ConstraintEncoder(setup.tokenizer, _glossary(file), setup.max_tokens)
    )
    return ConstraintControl(setup, encoder)


def _glossary(file: str) -> "Glossary | None":
    """Read the terms of a file; None if there is no file."""
    if not file:
        return None
    from nmt.terms.glossary import Glossary  # noqa: PLC0415 - few searches have terms

    return Glossary.read(file)


class ConstraintControl(Control):
    """Searches only translations that keep their constraints."""

    order = FORCES

    def __init__(self, setup: SearchSetup, encoder: "ConstraintEncoder") -> None:
        self._encoder, self._config, self._device = encoder, setup.config.search, setup.device
        self._vocabulary, self._once = setup.tokenizer.vocabularies[1], setup.once

    def encode(self, requests: Sequence[Request]) -> list[Constraints] | None:
        """See `Control.encode`."""
        return self._encoder.encode(requests)

    def begin(self, scorer: NextTokenScorer, batch: SearchBatch) -> tuple[NextTokenScorer, Choose | None]:
        """See `Control.begin`."""
        constraints = batch.constraints
        if any(each.beginning for each in constraints):
            scorer = force_prefixes(scorer, [each.beginning for each in constraints], self._device)
        if not any(each.terms for each in constraints):
            return scorer, None
        if self._config.strategy != "beam":
            raise UserError("terms need a beam: samples cannot have them")
        after_word = self._once("after_word", lambda: tokens_after_word(tuple(self._vocabulary), self._device))
        terms = RequiredTerms([each.terms for each in constraints], batch.max_lengths, after_word, self._config.beam)
        return terms.wrap(scorer), terms.choose


class ConstraintEncoder:
    """Encodes the constraints of requests."""

    def __init__(self, tokenizer: Tokenizer, glossary: "Glossary | None", max_tokens: int) -> None:
        """Add the terms of a glossary, if there is one; no translation may have more than `max_tokens` tokens."""
        self._tokenizer = tokenizer
        self._find = glossary.find if glossary else lambda _: ()
        self._max_tokens = max_tokens
        targets = list(dict.fromkeys(glossary.targets)) if glossary else []
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
