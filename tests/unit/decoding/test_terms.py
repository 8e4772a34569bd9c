"""Searches with required terms, compared with exhaustive search and with a plain search that follows the definition."""

from collections.abc import Sequence

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


def needed(words: Prefix, terms: Terms) -> int:
    """Return how many tokens of terms must follow, if the term that is nearest to its end is continued."""
    open_ = [term for term in terms if not stands(term, words) or not _has_ended(term, words)]
    progress = [
        max(size for size in range(len(term) + 1) if size == 0 or words[-size:] == term[:size]) for term in open_
    ]
    return sum(map(len, open_)) - max(progress, default=0)


def _has_ended(term: Prefix, words: Prefix) -> bool:
    """Return whether a term stands in a sentence besides at its end."""
    return any(
        words[at : at + len(term)] == term and words[at + len(term)] in AFTER_WORD
        for at in range(len(words) - len(term))
    )


def plain_search(toy: Toy, limit: int, beam: int, terms: Terms) -> list[tuple[Prefix, float]]:
    """Search one sentence with plain lists; return its finished hypotheses, best first."""
    open_: list[tuple[float, Prefix]] = [(0.0, ())]
    finished: list[tuple[Prefix, float]] = []
    for length in range(1, limit + 1):
        candidates: list[tuple[float, Prefix, int, int]] = []
        for total, prefix in open_:
            for token in (UNK, A, B, C, EOS):
                if token == EOS:
                    need = 0 if all(stands(term, prefix) for term in terms) else -1
                else:
                    need = needed((*prefix, token), terms)
                if 0 <= need <= limit - 1 - length * (token != EOS):
                    candidates.append((total + toy.log_probability(prefix, token), prefix, token, need))
        candidates.sort(key=lambda each: -each[0])
        dealt = _deal(candidates)
        for total, prefix, token, _ in dealt[:beam]:
            if token == EOS:
                finished.append((prefix, total / ((5 + length) / 6) ** 0.6))
        open_ = [(total, (*prefix, token)) for total, prefix, token, _ in dealt if token != EOS][:beam]
        finished.sort(key=lambda each: -each[1])
        if not open_ or (len(finished) >= beam and finished[beam - 1][1] >= max(open_)[0] / ((5 + length) / 6) ** 0.6):
            break
    return finished


def _deal(candidates: Sequence[tuple[float, Prefix, int, int]]) -> list[tuple[float, Prefix, int, int]]:
    """Return the best candidate of each need, those that need fewest first; then the second best of each, and so on."""
    piles = [[each for each in candidates if each[3] == need] for need in sorted({each[3] for each in candidates})]
    return [pile[rank] for rank in range(len(candidates)) for pile in piles if rank < len(pile)]


@pytest.mark.parametrize("beam", [2, 4, 7])
def test_a_narrow_beam_equals_a_direct_implementation_of_the_definition(beam: int) -> None:
    toys = [Toy(seed) for seed in range(2 * len(TERMS))]
    terms = [TERMS[seed % len(TERMS)] for seed in range(len(toys))]
    limits = [4 + sum(map(len, each)) + seed % 4 for seed, each in enumerate(terms)]
    results = search(toys, limits, [Constraints(terms=each) for each in terms], beam=beam, nbest=beam)
    for toy, limit, each, result in zip(toys, limits, terms, results, strict=True):
        assert found(result)[:1] == plain_search(toy, limit, beam, each)[:1]
