"""The vectors of the vocabulary: embeddings and the projection before the softmax (section 3.4 of the paper)."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.config.schema import ModelConfig

BIAS_COORDINATES = 8
"""Coordinates that hold the bias of the scores: one, and zeros."""


class WordVectors(nn.Module):
    """One matrix shared by both embeddings and the projection, or one matrix for each of the three."""

    def __init__(self, config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        sizes = {"source": source_vocabulary, "target": target_vocabulary, "projection": target_vocabulary}
        if config.tie_embeddings:
            if source_vocabulary != target_vocabulary:
                raise ValueError("tied embeddings need one vocabulary")
            sizes = {"shared": target_vocabulary}
        vectors = {name: random_vectors(size, config.d_model) for name, size in sizes.items()}
        for name in sorted(vectors):  # the order in which the optimizer's saved state has them
            self.register_parameter(name, vectors[name])
        self.bias = nn.Parameter(torch.zeros(target_vocabulary)) if config.output_bias else None
        self.tied = config.tie_embeddings
        self.scale = math.sqrt(config.d_model)

    def forward(self, side: str, tokens: Tensor) -> Tensor:
        """Return the vectors (T, d_model) of tokens, scaled by sqrt(d_model), for the side named source or target."""
        return F.embedding(tokens, self.matrix(side)) * self.scale

    def matrix(self, use: str) -> Tensor:
        """Return the matrix (words, d_model) for one of the three uses: source, target or projection."""
        matrix: Tensor = getattr(self, "shared" if self.tied else use)
        return matrix

    def logits(self, output: Tensor) -> Tensor:
        """Return the scores (..., V) of all words, given the last layer's output (..., d_model)."""
        return F.linear(output, self.matrix("projection"), self.bias)

    def with_bias(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """Return rows (T, d) and a matrix (V, d) whose products are the scores, with the bias as further coordinates.

        So the loss needs to know nothing of the bias. Their number keeps the width a multiple of 8.
        """
        projection = self.matrix("projection")
        if self.bias is None:
            return output, projection
        ones = F.pad(torch.ones_like(output[:, :1]), (0, BIAS_COORDINATES - 1))
        return torch.cat([output, ones], 1), torch.cat(
            [projection, F.pad(self.bias[:, None], (0, BIAS_COORDINATES - 1))], 1
        )


def random_vectors(count: int, d_model: int) -> nn.Parameter:
    """Return random vectors of length about 1: scaled by sqrt(d_model), their coordinates match the sinusoids'."""
    return nn.Parameter(torch.empty(count, d_model).normal_(std=d_model**-0.5))
