"""Beam search compared with exhaustive search, and with a plain search that follows the definition."""

import math

import pytest
import torch
from torch import Tensor

from nmt.decoding.beam import ensemble_scorers, top
from nmt.text.special import BOS, EOS, PAD
from tests.unit.decoding.toys import VOCABULARY, WORDS, Prefix, Toy, ToyScorer, exhaustive, found, search_with


def plain_search(toy: Toy, max_length: int, beam: int, alpha: float, nbest: int) -> list[tuple[Prefix, float]]:
    """Search one sentence with plain lists, until enough hypotheses are finished and none would join the best ones."""
    open_: list[tuple[float, Prefix]] = [(0.0, ())]
    finished: list[tuple[Prefix, float]] = []
    for length in range(1, max_length + 1):
        allowed = [EOS] if length == max_length else [*WORDS, EOS]
        candidates = sorted(
            (
                (total + toy.log_probability(prefix, token), prefix, token)
                for total, prefix in open_
                for token in allowed
            ),
            reverse=True,
        )
        for total, prefix, token in candidates[:beam]:
            if token == EOS:
                finished.append((prefix, total / ((5 + length) / 6) ** alpha))
        open_ = [(total, (*prefix, token)) for total, prefix, token in candidates if token != EOS][:beam]
        finished.sort(key=lambda sentence: -sentence[1])
        enough = len(finished) >= beam and bool(open_)
        if enough and finished[nbest - 1][1] >= open_[0][0] / ((5 + length) / 6) ** alpha:
            break
    return finished[:nbest]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.5])
@pytest.mark.parametrize("max_length", [1, 2, 4])
def test_a_wide_beam_equals_exhaustive_search(alpha: float, max_length: int) -> None:
    for seed in range(8):
        expected = exhaustive(Toy(seed), max_length, alpha)
        everything = len(expected) * len(WORDS)
        for nbest in (1, 5):
            (result,) = search_with(ToyScorer([Toy(seed)]), [max_length], beam=everything, alpha=alpha, nbest=nbest)
            assert found(result) == expected[:nbest]


@pytest.mark.parametrize(("beam", "nbest"), [(1, 1), (2, 1), (3, 3), (5, 2)])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_narrow_beam_equals_a_direct_implementation_of_the_definition(beam: int, nbest: int, alpha: float) -> None:
    limits = [1, 3, 9, 6, 12, 2, 8, 8]
    toys = [Toy(seed) for seed in range(len(limits))]
    results = search_with(ToyScorer(toys), limits, beam=beam, alpha=alpha, nbest=nbest)
    for toy, limit, result in zip(toys, limits, results, strict=True):
        assert found(result) == plain_search(toy, limit, beam, alpha, nbest)


@pytest.mark.parametrize("beam", [1, 2, 4, 8])
def test_improbable_endings_do_not_end_the_search_of_a_confident_model(beam: int) -> None:
    """After each word but the last, the ending is the second most probable token, and far less probable."""
    translation, (other, *_) = [WORDS[0]] * 12, WORDS[1:]

    def confident(tokens: Tensor, parents: Tensor) -> Tensor:
        goes_on = len(steps) < len(translation)
        steps.append(len(tokens))
        scores = torch.full((len(tokens), VOCABULARY), -20.0)
        scores[:, [translation[0], EOS, other]] = torch.tensor([5.0, 0.0, -1.0] if goes_on else [0.0, 5.0, -1.0])
        return scores

    steps: list[int] = []
    ((result,),) = search_with(confident, [20], beam=beam, alpha=0.0)
    assert result.tokens == translation


def test_the_result_of_a_sentence_does_not_depend_on_its_batch() -> None:
    toys, limits = [Toy(seed) for seed in range(20)], [seed % 9 + 1 for seed in range(20)]
    together = search_with(ToyScorer(toys), limits, beam=4, alpha=0.6, nbest=4)
    for toy, limit, result in zip(toys, limits, together, strict=True):
        (alone,) = search_with(ToyScorer([toy]), [limit], beam=4, alpha=0.6, nbest=4)
        assert found(alone) == found(result)


def test_finished_sentences_leave_the_batch() -> None:
    scorer = ToyScorer([Toy(seed) for seed in range(4)])
    search_with(scorer, [2, 3, 8, 8], beam=3, alpha=0.6)
    assert scorer.calls[0] == 4
    assert max(scorer.calls[1:3]) <= 4 * 3
    assert max(scorer.calls[3:]) <= 2 * 3


def test_a_sentence_at_its_limit_ends_even_if_that_is_improbable() -> None:
    def never_ends(tokens: Tensor, parents: Tensor) -> Tensor:
        scores = torch.zeros(len(tokens), 50)
        scores[:, EOS] = -30.0
        return scores

    (results,) = search_with(never_ends, [4], beam=3, alpha=0.6, nbest=3)
    assert [len(result.tokens) for result in results] == [3, 3, 3]
    assert all(result.log_probability == pytest.approx(-30 - 4 * math.log(49), rel=1e-4) for result in results)


def test_pad_and_bos_are_never_chosen() -> None:
    def insists(tokens: Tensor, parents: Tensor) -> Tensor:
        scores = torch.arange(20.0).expand(len(tokens), 20).clone()
        scores[:, [PAD, BOS]] = 100.0
        return scores

    ((result,),) = search_with(insists, [3], beam=1, alpha=0.0)
    assert result.tokens == [19, 19]
    # They are skipped, but the other probabilities are not renormalised.
    assert result.log_probability == pytest.approx(2 * (19 - 100 - math.log(2)) + (EOS - 100 - math.log(2)), rel=1e-5)


def test_scores_of_nan_give_no_hypothesis() -> None:
    results = search_with(lambda tokens, _: torch.full((len(tokens), 9), math.nan), [3], beam=2, alpha=0.6)
    assert results == [[]]


def test_an_ensemble_averages_probabilities() -> None:
    tokens, parents = torch.tensor([BOS, BOS]), torch.arange(2)
    first, second = torch.randn(2, 9), torch.randn(2, 9)
    both = ensemble_scorers([lambda t, p: first, lambda t, p: second])(tokens, parents)
    torch.testing.assert_close(both.exp(), (first.softmax(-1) + second.softmax(-1)) / 2)
    torch.testing.assert_close(ensemble_scorers([lambda t, p: first])(tokens, parents), first)


@pytest.mark.parametrize("width", [3, 50, 64 * 6, 64 * 7, 64 * 40, 64 * 40 + 17])
@pytest.mark.parametrize("count", [1, 6])
def test_top_scores_by_chunks_equal_topk(width: int, count: int) -> None:
    for _ in range(20):
        scores = torch.randn(30, width)
        highest, places = top(scores, count)
        expected = scores.topk(min(count, width), dim=1)
        assert torch.equal(highest, expected.values)
        assert torch.equal(places, expected.indices)
