"""Sampling from a scorer with known probabilities, and forced prefixes."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import cast

import pytest
import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.decoding.beam import Hypothesis, NextTokenScorer, beam_search
from nmt.features.constraints.beginnings import force_prefixes
from nmt.features.sampling import sample as module
from nmt.features.sampling.noise import SeededNoise
from nmt.features.sampling.sample import sample
from nmt.features.sampling.settings import SamplingDecoding
from nmt.text.special import BOS, EOS, PAD
from tests.unit.decoding.toys import WORDS, Prefix, Toy, ToyScorer

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
    scorer: NextTokenScorer, limits: Sequence[int], seeds: Sequence[int], count: int, **settings: float
) -> list[list[Hypothesis]]:
    config = DecodingConfig(strategy="sample", nbest=count, **settings)  # type: ignore[arg-type]
    sampling = cast(SamplingDecoding, config)
    limits_of_samples, seeds_of_samples = (torch.tensor(each).repeat_interleave(count) for each in (limits, seeds))
    return sample(scorer, limits_of_samples, count, config.alpha, sampling, seeds_of_samples)


def drawn(count: int, **settings: float) -> list[list[Hypothesis]]:
    return draw(OneToken(), [5, 5], [3, 4], count, **settings)


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
        ({"epsilon": 0.25}, {A: 4 / 7, B: 3 / 7}),
        ({"epsilon": 0.9}, {A: 1.0}),
        ({"temperature": 0.5}, {EOS: 1 / 30, A: 16 / 30, B: 9 / 30, C: 4 / 30}),
    ],
)
def test_narrowed_samples_have_the_expected_frequencies(settings: dict[str, float], expected: dict[int, float]) -> None:
    for hypotheses in drawn(4000, **settings):
        assert shares(hypotheses) == pytest.approx(expected, abs=0.03)


def test_samples_depend_only_on_the_seed_of_the_sentence() -> None:
    def found(*seeds: int) -> list[list[Hypothesis]]:
        return draw(OneToken(), [5] * len(seeds), seeds, 50)

    first, second = found(3, 4)
    assert first != second
    assert found(9, 4, 3, 4) == [*found(9), second, first, second]


def plain_sample(
    toy: Toy, seed: int, limit: int, temperature: float = 1.0, epsilon: float = 0.0, top_k: int = 0, top_p: float = 1.0
) -> tuple[Prefix, float]:
    """Draw one sample on its own, token by token: the best of the possible tokens after the noise is added."""
    noise, tokens, total = SeededNoise(torch.tensor([seed])), list[int](), 0.0
    while True:
        log_probabilities = toy.logits(tuple(tokens)).log_softmax(0)
        scores = log_probabilities / temperature
        scores[[PAD, BOS]] = -math.inf
        chances = scores.softmax(0).tolist()
        possible = sorted([*WORDS, EOS], key=lambda token: -chances[token])[: top_k or None]
        possible = [token for token in possible if chances[token] >= epsilon] or possible[:1]
        mass = sum(chances[token] for token in possible)
        before = [sum(chances[token] for token in possible[:place]) / mass for place in range(len(possible))]
        possible = [token for token, earlier in zip(possible, before, strict=True) if earlier < top_p]
        noisy = (scores + noise.draw(len(scores))[0]).tolist()
        token = EOS if len(tokens) == limit - 1 else max(possible, key=lambda token: noisy[token])
        total += float(log_probabilities[token])
        if token == EOS:
            return tuple(tokens), total
        noise.extend(torch.tensor([token]), torch.tensor([0]))
        tokens.append(token)


@pytest.mark.parametrize("rows", [4, 128])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"epsilon": 0.1},
        {"epsilon": 0.15, "temperature": 1.5},
        {"top_k": 2},
        {"top_p": 0.7},
        {"top_k": 4, "top_p": 0.8, "epsilon": 0.12, "temperature": 0.8},
    ],
)
def test_samples_are_those_that_are_drawn_one_by_one_and_finished_ones_leave(
    settings: dict[str, float], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CACHED_ROWS", rows)
    toys, limits, seeds, count = [Toy(seed, 1.0) for seed in range(4)], [9, 5, 2, 9], [7, 3, 3, 10**6], 6
    scorer = ToyScorer([toy for toy in toys for _ in range(count)])
    found = draw(scorer, limits, seeds, count, **settings)
    for toy, limit, seed, hypotheses in zip(toys, limits, seeds, found, strict=True):
        expected = sorted(plain_sample(toy, seed + number, limit, **settings) for number in range(count))  # type: ignore[arg-type]
        drawn = sorted((tuple(each.tokens), each.log_probability) for each in hypotheses)
        assert [tokens for tokens, _ in drawn] == [tokens for tokens, _ in expected]
        assert [total for _, total in drawn] == pytest.approx([total for _, total in expected], rel=1e-4)
    lengths = [len(each.tokens) + 1 for hypotheses in found for each in hypotheses]
    assert len(set(lengths)) > 3
    assert scorer.calls == [sum(length >= step for length in lengths) for step in range(1, max(lengths) + 1)]


@pytest.mark.parametrize("settings", [{}, {"epsilon": 0.1}])
def test_there_are_no_samples_without_finite_scores(settings: dict[str, float]) -> None:
    def broken(tokens: Tensor, parents: Tensor) -> Tensor:
        return torch.full((len(tokens), 7), math.nan)

    assert draw(broken, [3, 4], [1, 2], 2, **settings) == [[], []]


def test_samples_end_at_their_limits() -> None:
    def endless(tokens: Tensor, parents: Tensor) -> Tensor:
        scores = torch.full((len(tokens), 7), -math.inf)
        scores[:, A], scores[:, EOS] = 0.0, -50.0
        return scores

    found = draw(endless, [3, 5], [3, 4], 2)
    assert [[each.tokens for each in hypotheses] for hypotheses in found] == [[[A] * 2] * 2, [[A] * 4] * 2]


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

    found = beam_search(forced(), limits, beam=3, alpha=0.0)
    free = beam_search(Chain(), limits[:1], beam=3, alpha=0.0)
    assert found[1] == free[0]
    assert found[0][0].tokens[:2] == [C, C]
    assert found[2][0].tokens[:1] == [B]
    # The best hypothesis ends right after the prefix: 0.1 for EOS is more than 0.6 * 0.1.
    assert found[0][0].tokens == [C, C]
    assert found[0][0].log_probability == pytest.approx(math.log(0.1))
    for prefix, hypotheses in zip(prefixes, draw(forced(5), [4, 4, 4], [0, 1, 2], 5), strict=True):
        assert all(each.tokens[: len(prefix)] == prefix for each in hypotheses)
