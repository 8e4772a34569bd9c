"""Sampling from a scorer with known probabilities, and forced prefixes."""

import math
from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from nmt.config.decoding import DecodingConfig
from nmt.decoding.beam import Hypothesis, NextTokenScorer
from nmt.decoding.masks import force_prefixes
from nmt.decoding.sampling import sample
from nmt.text.special import EOS
from tests.unit.decoding.toys import Toy, ToyScorer, search_with

A, B, C = 4, 5, 6
FIRST = {EOS: 0.1, A: 0.4, B: 0.3, C: 0.2}


class OneToken:
    """Gives the first token the probabilities `FIRST`, and then EOS the probability 1."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, tokens: Tensor, parents: Tensor) -> Tensor:
        self.calls += 1
        scores = torch.full((len(tokens), 7), -math.inf)
        if self.calls == 1:
            for token, probability in FIRST.items():
                scores[:, token] = math.log(probability)
        else:
            scores[:, EOS] = 0.0
        return scores


def draw(
    scorer: NextTokenScorer, limits: Sequence[int], count: int, seed: int = 1, **settings: float
) -> list[list[Hypothesis]]:
    config = DecodingConfig(strategy="sample", nbest=count, **settings)  # type: ignore[arg-type]
    limits_of_samples = torch.tensor(limits).repeat_interleave(count)
    return sample(scorer, limits_of_samples.tolist(), config, torch.Generator().manual_seed(seed))


def drawn(count: int, seed: int = 1, **settings: float) -> list[list[Hypothesis]]:
    return draw(OneToken(), [5, 5], count, seed, **settings)


def shares(hypotheses: list[Hypothesis]) -> dict[int, float]:
    counts = Counter(each.tokens[0] if each.tokens else EOS for each in hypotheses)
    return {token: count / len(hypotheses) for token, count in counts.items()}


def test_frequencies_of_samples_are_their_probabilities() -> None:
    for hypotheses in drawn(4000):
        found = shares(hypotheses)
        assert found == pytest.approx(FIRST, abs=0.03)
        for each in hypotheses:
            token = each.tokens[0] if each.tokens else EOS
            assert each.log_probability == pytest.approx(math.log(FIRST[token]), abs=1e-5)
        assert [each.score for each in hypotheses] == sorted((each.score for each in hypotheses), reverse=True)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"top_k": 1}, {A: 1.0}),
        ({"top_k": 2}, {A: 4 / 7, B: 3 / 7}),
        ({"top_p": 0.6}, {A: 4 / 7, B: 3 / 7}),
        ({"top_p": 0.3}, {A: 1.0}),
        ({"top_k": 3, "top_p": 0.6}, {A: 4 / 7, B: 3 / 7}),
        ({"temperature": 0.5}, {EOS: 1 / 30, A: 16 / 30, B: 9 / 30, C: 4 / 30}),
    ],
)
def test_narrowed_samples_have_the_expected_frequencies(settings: dict[str, float], expected: dict[int, float]) -> None:
    for hypotheses in drawn(4000, **settings):  # type: ignore[arg-type]
        assert shares(hypotheses) == pytest.approx(expected, abs=0.03)


def test_finished_samples_leave_the_batch() -> None:
    toys, count = [Toy(seed, 1.0) for seed in range(4)], 6
    scorer = ToyScorer([toy for toy in toys for _ in range(count)])
    found = draw(scorer, [9, 5, 2, 9], count)
    lengths = [len(each.tokens) + 1 for hypotheses in found for each in hypotheses]
    assert len(set(lengths)) > 3
    assert scorer.calls == [sum(length >= step for length in lengths) for step in range(1, max(lengths) + 1)]


def test_a_forced_prefix_has_probability_one_and_the_rest_is_searched() -> None:
    table = {A: [B, C], B: [A, C], C: [C, A]}  # the next tokens with 0.6 and 0.3; EOS has 0.1

    class Chain:
        def __call__(self, tokens: Tensor, parents: Tensor) -> Tensor:
            scores = torch.full((len(tokens), 7), -math.inf)
            for row, token in enumerate(tokens.tolist()):
                likely, other = table.get(token, [C, B])
                scores[row, likely], scores[row, other], scores[row, EOS] = math.log(0.6), math.log(0.3), math.log(0.1)
            return scores

    limits = torch.tensor([4, 4, 4])
    prefixes = [[C, C], [], [B]]

    def forced(copies: int = 1) -> NextTokenScorer:
        copied = [prefix for prefix in prefixes for _ in range(copies)]
        return force_prefixes(Chain(), copied, torch.device("cpu"))

    found = search_with(forced(), limits, beam=3, alpha=0.0)
    free = search_with(Chain(), limits[:1], beam=3, alpha=0.0)
    assert found[1] == free[0]
    assert found[0][0].tokens[:2] == [C, C]
    assert found[2][0].tokens[:1] == [B]
    # The best hypothesis ends right after the prefix: 0.1 for EOS is more than 0.6 * 0.1.
    assert found[0][0].tokens == [C, C]
    assert found[0][0].log_probability == pytest.approx(math.log(0.1))
    for prefix, hypotheses in zip(prefixes, draw(forced(5), [4, 4, 4], 5), strict=True):
        assert all(each.tokens[: len(prefix)] == prefix for each in hypotheses)
