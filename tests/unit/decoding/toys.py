"""Random languages that are small enough to be searched exhaustively."""

from collections.abc import Sequence
from functools import partial
from itertools import product

import pytest
import torch
from torch import Tensor

from nmt.decoding.beam import Hypothesis, NextTokenScorer, beam_search, by_scores, most_probable
from nmt.text.special import BOS, EOS, PAD

VOCABULARY = 7
WORDS = [token for token in range(VOCABULARY) if token not in (PAD, BOS, EOS)]
Prefix = tuple[int, ...]


class Toy:
    """A random language, in which the next token depends on the whole prefix and on the sentence."""

    def __init__(self, seed: int, sharpness: float = 1.5) -> None:
        self.seed, self.sharpness = seed, sharpness

    def logits(self, prefix: Prefix) -> Tensor:
        generator = torch.Generator().manual_seed(hash((self.seed, *prefix)) % 2**31)
        return torch.randn(VOCABULARY, generator=generator) * self.sharpness

    def log_probability(self, prefix: Prefix, token: int) -> float:
        return float(self.logits(prefix).log_softmax(0)[token])


class ToyScorer:
    """Scores with several toy languages, one per sentence."""

    def __init__(self, toys: Sequence[Toy]) -> None:
        self.rows: list[tuple[Toy, Prefix]] = [(toy, ()) for toy in toys]
        self.calls: list[int] = []

    def __call__(self, tokens: Tensor, parents: Tensor) -> Tensor:
        first = not self.calls
        self.calls.append(len(tokens))
        if first:
            assert parents.tolist() == list(range(len(self.rows)))
            assert tokens.tolist() == [BOS] * len(self.rows)
        self.rows = [
            (self.rows[parent][0], () if first else (*self.rows[parent][1], token))
            for token, parent in zip(tokens.tolist(), parents.tolist(), strict=True)
        ]
        return torch.stack([toy.logits(prefix) for toy, prefix in self.rows])


def found(hypotheses: list[Hypothesis]) -> list[tuple[Prefix, object]]:
    """Return tokens and scores, to be compared up to rounding."""
    return [(tuple(hypothesis.tokens), pytest.approx(hypothesis.score, rel=1e-5)) for hypothesis in hypotheses]


def exhaustive(toy: Toy, max_length: int, alpha: float) -> list[tuple[Prefix, float]]:
    """Return every possible sentence, best first."""
    sentences = []
    for count in range(max_length):
        for words in product(WORDS, repeat=count):
            tokens = (*words, EOS)
            total = sum(toy.log_probability(tokens[:place], token) for place, token in enumerate(tokens))
            sentences.append((words, total / ((5 + len(tokens)) / 6) ** alpha))
    return sorted(sentences, key=lambda sentence: -sentence[1])


def search_with(
    scorer: NextTokenScorer,
    limits: Sequence[int] | Tensor,
    *,
    beam: int,
    alpha: float,
    nbest: int = 1,
) -> list[list[Hypothesis]]:
    """Search with a beam, given a scorer of all tokens."""
    continue_ = by_scores(scorer, partial(most_probable, beam=beam))
    limits = [int(limit) for limit in limits]
    return beam_search(continue_, limits, beam=beam, alpha=alpha, nbest=nbest)
