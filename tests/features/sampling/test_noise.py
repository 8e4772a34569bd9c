"""Noisy beam search, compared with exhaustive search of the noisy scores, and with the distribution that it samples."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fuzz.prepared import tiny_run
from nmt.compute.machine import prepare_machine
from nmt.decoding.beam import Hypothesis, beam_search, length_penalty
from nmt.decoding.load_engine import load_engine
from nmt.features.sampling.noise import SeededNoise, noisy_scorer, sentence_seeds
from nmt.text.special import BOS, EOS

CPU = torch.device("cpu")
A, B, C = 4, 5, 6
PROBABILITIES = {EOS: 0.1, A: 0.4, B: 0.3, C: 0.2}
LOGITS = torch.full((7,), -math.inf)
for token, probability in PROBABILITIES.items():
    LOGITS[token] = math.log(probability)


def independent(tokens: Tensor, parents: Tensor) -> Tensor:
    """Score tokens without regard to those before."""
    return LOGITS.expand(len(tokens), -1)


def search(seeds: Sequence[int], length: int, beam: int, scale: float) -> list[list[Hypothesis]]:
    scorer = noisy_scorer(independent, torch.tensor(seeds), scale)
    return beam_search(scorer, torch.full((len(seeds),), length), beam=beam, alpha=0.6, nbest=1)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_a_noisy_beam_of_one_draws_samples_at_a_temperature(scale: float) -> None:
    seeds = sentence_seeds([[number] for number in range(8000)], 1, CPU).tolist()
    counts = Counter((hypothesis.tokens or [EOS])[0] for (hypothesis,) in search(seeds, 2, 1, scale))
    weights = {token: probability ** (1 / scale) for token, probability in PROBABILITIES.items()}
    expected = {token: weight / sum(weights.values()) for token, weight in weights.items()}
    assert {token: count / len(seeds) for token, count in counts.items()} == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_noisy_beam_finds_the_best_of_all_sentences(seed: int) -> None:
    def noisy(prefix: tuple[int, ...]) -> Tensor:
        noise = SeededNoise(torch.tensor([seed]))
        for token in (BOS, *prefix):
            noise.extend(torch.tensor([token]), torch.tensor([0]))
        return (LOGITS + 2.0 * noise.draw(7)[0]).log_softmax(0)

    def score(words: tuple[int, ...]) -> float:
        tokens = (*words, EOS)
        total = sum(float(noisy(tokens[:place])[token]) for place, token in enumerate(tokens))
        return total / length_penalty(len(tokens), 0.6)

    ((found,),) = search([seed], 4, 100, 2.0)
    scores = {words: score(words) for count in range(4) for words in product((A, B, C), repeat=count)}
    assert found.score == pytest.approx(max(scores.values()), abs=1e-5)
    assert tuple(found.tokens) == max(scores, key=scores.__getitem__)


def test_noise_does_not_depend_on_the_batch() -> None:
    seeds = [5, 9, 5, 123]
    together = search(seeds, 6, 3, 1.5)
    assert together == [search([seed], 6, 3, 1.5)[0] for seed in seeds]
    assert together[0] != together[1]


def test_seeds_of_sentences_depend_on_the_tokens_and_the_seed() -> None:
    sentences = [[4, 5], [5, 4], [4], [4, 5]]
    first, other = sentence_seeds(sentences, 1, CPU).tolist(), sentence_seeds(sentences, 2, CPU).tolist()
    assert first[0] == first[3]
    assert len({*first, *other}) == 6


def test_scores_are_those_of_the_model_without_noise(tmp_path: Path) -> None:
    config = tiny_run(tmp_path)
    machine = prepare_machine(config.runtime)
    lines = ["the small cat sees", "a dog", "", "the dog sees a small small cat"]

    def translate(**settings: float) -> list[list[Hypothesis]]:
        decoding = replace(config.decoding, nbest=2, **settings)  # type: ignore[arg-type]
        engine = load_engine(replace(config, decoding=decoding), machine).engine
        return engine.translate_ids(engine.tokenizer.encode_source(lines))

    plain, noisy = translate(), translate(noise=3.0)
    assert [each[0].tokens for each in plain] != [each[0].tokens for each in noisy]
    assert [[each.tokens for each in found] for found in translate(noise=3.0, batch_tokens=1)] == [
        [each.tokens for each in found] for found in noisy
    ]
    engine = load_engine(config, machine).engine
    sources = engine.tokenizer.encode_source(lines)
    for source, found in zip(sources, noisy, strict=True):
        for each in found if source else []:
            (scores,) = engine.token_scores([source], [each.tokens])
            assert each.log_probability == pytest.approx(sum(scores), abs=1e-4)
