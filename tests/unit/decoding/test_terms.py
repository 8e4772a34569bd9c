"""Searches with required terms, compared with exhaustive search and with a plain search that follows the definition."""

import pytest

from nmt.decoding.constraints import Constraints
from nmt.text.special import EOS, UNK
from tests.unit.decoding.test_search import EVERYTHING, LIMIT, A, B, C, search
from tests.unit.decoding.toys import Prefix, Toy, exhaustive, found

Terms = tuple[Prefix, ...]
APART: list[Terms] = [((A,),), ((A, B),), ((A, A),), ((A, B), (C,)), ((A,), (A, B)), ((C, B, B),), ((A,), (C,), (A, B))]
TERMS: list[Terms] = [*APART, ((A, A, C), (A, C), (A,))]
AFTER_WORD = (UNK, A, C, EOS)


def stands(term: Prefix, words: Prefix) -> bool:
    """Return whether a term stands in a sentence, and the next token does not continue its last word."""
    ended = (*words, EOS)
    places = range(len(words) - len(term) + 1)
    return any(words[at : at + len(term)] == term and ended[at + len(term)] in AFTER_WORD for at in places)


@pytest.mark.parametrize("terms", APART, ids=str)
def test_a_wide_beam_finds_the_most_probable_sentences_with_all_terms(terms: Terms) -> None:
    for seed in range(3):
        expected = [each for each in exhaustive(Toy(seed), LIMIT, 0.6) if all(stands(term, each[0]) for term in terms)]
        (result,) = search([Toy(seed)], [LIMIT], [Constraints(terms=terms)], beam=EVERYTHING, nbest=20)
        assert found(result) == expected[:20]


@pytest.mark.parametrize("beam", [1, 2, 3, 5])
def test_no_beam_is_too_narrow_for_the_terms(beam: int) -> None:
    toys = [Toy(seed, sharpness=3.0) for seed in range(5 * len(TERMS))]
    terms = [TERMS[seed % len(TERMS)] for seed in range(len(toys))]
    limits = [1 + sum(map(len, each)) + seed % 5 for seed, each in enumerate(terms)]
    constraints = [Constraints(terms=each) for each in terms]
    results = search(toys, limits, constraints, beam=beam, nbest=1, no_repeat_ngram=1)
    for each, limit, (best, *_) in zip(terms, limits, results, strict=True):
        assert all(stands(term, tuple(best.tokens)) for term in each)
        assert len(best.tokens) < limit
