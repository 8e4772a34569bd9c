"""The two parts of the shared matrix's gradient add up to the whole."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from nmt.config.registry import CHOICES
from nmt.data.store import PairStore
from nmt.model.build import build_model
from nmt.model.word_vectors import WordVectors
from nmt.training.objective import Objective
from nmt.training.replicas import EmbeddingGradient
from tests.unit.training.test_trainer import MODEL, TRAINING, VOCABULARY, batches_of, store

__all__ = ["store"]


def vectors_of(model: object) -> WordVectors:
    assert isinstance(model, nn.Module)
    return next(module for module in model.modules() if isinstance(module, WordVectors))


@pytest.mark.parametrize("architecture", CHOICES["model.architecture"])
def test_both_parts_together_are_the_gradient(store: PairStore, architecture: str) -> None:
    model = build_model(replace(MODEL, architecture=architecture), VOCABULARY, VOCABULARY).double()
    objective, matrix = Objective(model, 0.1), model.projection
    (batch,) = batches_of(store, replace(TRAINING, batch_tokens=30), 1)
    objective(batch.micro_batches[0]).smoothed.backward()
    expected, matrix.grad = matrix.grad, None
    apart = EmbeddingGradient(vectors_of(model))
    for weight in (0.25, 0.75):  # as if accumulated
        with apart.apart():
            (weight * objective(batch.micro_batches[0]).smoothed).backward()
    assert expected is not None
    assert matrix.grad is not None
    early = matrix.grad.clone()
    words = torch.cat([batch.micro_batches[0].source.tokens, batch.micro_batches[0].target.tokens]).unique()
    assert len(words) < VOCABULARY
    apart.add_average(words)
    assert not torch.allclose(early, expected, rtol=1e-2)
    torch.testing.assert_close(matrix.grad, expected, rtol=1e-12, atol=1e-12)
