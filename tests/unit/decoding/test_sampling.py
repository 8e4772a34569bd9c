"""Sampling from a scorer with known probabilities."""

import math
from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from nmt.config.decoding import DecodingConfig
from nmt.decoding.beam import Hypothesis, NextTokenScorer
from nmt.decoding.sampling import sample
from nmt.text.special import EOS
from tests.unit.decoding.toys import Toy, ToyScorer

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
