"""Restrictions and constraints of a search, compared with exhaustive search among the sentences that they allow."""

from collections.abc import Sequence

import pytest
import torch

from nmt.config.decoding import DecodingConfig
from nmt.decoding.beam import Hypothesis, beam_search, by_scores
from nmt.decoding.constraints import UNCONSTRAINED, Constraints
from nmt.decoding.masks import masked
from nmt.decoding.sampling import sample
from nmt.decoding.terms import RequiredTerms, tokens_after_word
from nmt.text.special import UNK
from tests.unit.decoding.toys import Prefix, Toy, ToyScorer, exhaustive, found, search_with

A, B, C = 4, 5, 6
VOCABULARY = ["<unk>", "<pad>", "<s>", "</s>", "▁a", "b", "▁ab"]
LIMIT = 5
EVERYTHING = 2000  # more than there are sentences of at most LIMIT tokens


def search(
    toys: Sequence[Toy], limits: Sequence[int], constraints: Sequence[Constraints] = (), **settings: float | str | bool
) -> list[list[Hypothesis]]:
    config = DecodingConfig(**settings)  # type: ignore[arg-type]
    copies = config.nbest if config.strategy == "sample" else 1
    sentences = zip(toys, limits, constraints or [UNCONSTRAINED] * len(toys), strict=True)
    copied = [sentence for sentence in sentences for _ in range(copies)]
    toys, limits, constraints = zip(*copied, strict=True)
    device = torch.device("cpu")
    scorer = masked(ToyScorer(toys), constraints, config.search, device)
    if config.strategy == "sample":
        return sample(scorer, limits, config, torch.Generator().manual_seed(1))
    if not any(each.terms for each in constraints):
        return search_with(scorer, limits, beam=config.beam, alpha=config.alpha, nbest=config.nbest)
    terms = [each.terms for each in constraints]
    required = RequiredTerms(terms, torch.tensor(limits), tokens_after_word(tuple(VOCABULARY), device), config.beam)
    continue_ = by_scores(required.wrap(scorer), required.choose)
    return beam_search(continue_, limits, beam=config.beam, alpha=config.alpha, nbest=config.nbest)


def repeats(words: Prefix, size: int) -> bool:
    sequences = [words[place : place + size] for place in range(len(words) - size + 1)]
    return len(set(sequences)) < len(sequences)


@pytest.mark.parametrize("ngram", [1, 2, 3])
def test_a_wide_beam_finds_the_most_probable_of_the_allowed_sentences(ngram: int) -> None:
    for seed in range(3):
        expected = [each for each in exhaustive(Toy(seed), LIMIT, 0.6) if not repeats(each[0], ngram)][:20]
        (result,) = search([Toy(seed)], [LIMIT], beam=EVERYTHING, nbest=20, no_repeat_ngram=ngram)
        assert found(result) == expected


@pytest.mark.parametrize("beginning", [(B,), (C, C)])
def test_a_forced_beginning_has_probability_one_and_the_rest_is_searched(beginning: Prefix) -> None:
    for seed in range(3):
        toy = Toy(seed)
        forced = sum(toy.log_probability(beginning[:place], token) for place, token in enumerate(beginning))
        allowed = [each for each in exhaustive(toy, LIMIT, 0.0) if each[0][: len(beginning)] == beginning][:20]
        (result,) = search([toy], [LIMIT], [Constraints(beginning)], beam=EVERYTHING, alpha=0.0, nbest=20)
        assert found(result) == [(words, total - forced) for words, total in allowed]


@pytest.mark.parametrize("strategy", ["beam", "sample"])
def test_every_hypothesis_keeps_every_control(strategy: str) -> None:
    toys, limits = [Toy(seed) for seed in range(30)], [seed % 7 + 4 for seed in range(30)]
    beginnings = [Constraints((B, C)), UNCONSTRAINED, Constraints((A,))]
    constraints = [beginnings[seed % 3] for seed in range(30)]
    settings: dict[str, str | int] = {"no_repeat_ngram": 2}
    results = search(toys, limits, constraints, strategy=strategy, beam=4, nbest=3, **settings)
    for constraint, hypotheses in zip(constraints, results, strict=True):
        assert hypotheses
        for words in (tuple(each.tokens) for each in hypotheses):
            assert not repeats(words, 2)
            assert words[: len(constraint.beginning)] == constraint.beginning


def test_the_result_of_a_sentence_does_not_depend_on_its_batch() -> None:
    toys, limits = [Toy(seed) for seed in range(12)], [seed % 9 + 3 for seed in range(12)]
    constraints = [
        Constraints((B,) * (seed % 3) + (C,) * (seed % 2), terms=((C, B),) * (seed % 4 == 3)) for seed in range(12)
    ]
    settings = {"beam": 4, "nbest": 2, "no_repeat_ngram": 2}
    limits = [limit + constraint.tokens for limit, constraint in zip(limits, constraints, strict=True)]
    together = search(toys, limits, constraints, **settings)
    for toy, limit, constraint, result in zip(toys, limits, constraints, together, strict=True):
        (alone,) = search([toy], [limit], [constraint], **settings)
        assert found(alone) == found(result)


def test_a_forced_beginning_may_have_what_is_forbidden_after_it() -> None:
    beginning = Constraints((UNK, B, UNK, B))
    settings = {"no_repeat_ngram": 2}
    for seed in range(5):
        ((result,),) = search([Toy(seed)], [9], [beginning], beam=3, **settings)
        assert result.tokens[:4] == [UNK, B, UNK, B]
        assert not repeats(tuple(result.tokens[2:]), 2)
