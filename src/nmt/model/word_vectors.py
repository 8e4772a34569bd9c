"""The vectors of the vocabulary: embeddings and the projection before the softmax (section 3.4 of the paper)."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.model.attention import exact_type
from nmt.model.modules import Copies

BIAS_COORDINATES = 8
"""Coordinates that hold the bias of the scores: one, and zeros."""


class Factors(NamedTuple):
    """Rows and a matrix whose products are the scores of all words: what the loss needs."""

    rows: Tensor
    """One row (T, d) per token, in the precision of products."""
    projection: Tensor
    """The matrix (V, d), which gets a gradient."""
    working: Tensor
    """The same matrix in the precision of products, without a gradient if it is a copy."""


class WordVectors(nn.Module):
    """One matrix shared by both embeddings and the projection, or one matrix for each of the three."""

    copies: Copies | None = None
    """The matrices in the precision of products, while that is not float32 (`model.working_weights`)."""

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
        matrix = self.matrix(side)
        # gradients are added up in float32: a frequent token has thousands of them
        exact = matrix.to(exact_type(matrix)) if matrix.requires_grad and torch.is_grad_enabled() else matrix
        rows = nn.functional.embedding(tokens, exact)
        return rows.to(self.working_matrix(side).dtype) * self.scale

    def matrix(self, use: str) -> Tensor:
        """Return the matrix (words, d_model) for one of the three uses: source, target or projection."""
        matrix: Tensor = getattr(self, self._name(use))
        return matrix

    def working_matrix(self, use: str) -> Tensor:
        """Return the matrix in the precision of products, without a gradient if that is a copy."""
        return self.matrix(use) if self.copies is None else self.copies[self._name(use)]

    def _name(self, use: str) -> str:
        return "shared" if self.tied else use

    def logits(self, output: Tensor) -> Tensor:
        """Return the scores (..., V) of all words, given the last layer's output (..., d_model)."""
        return nn.functional.linear(output, self.matrix("projection"), self.bias)

    def factors(self, output: Tensor) -> Factors:
        """Return what the loss multiplies, a few rows at a time, given the last layer's output (T, d).

        A bias becomes further coordinates, so the loss needs to know nothing of it. Their number keeps the width a
        multiple of 8.
        """
        projection, working = self.matrix("projection"), self.working_matrix("projection")
        if self.bias is None:
            return Factors(output, projection, working)
        wide_projection = torch.cat([projection, _coordinates(self.bias)], 1)
        rows = torch.cat([output, _coordinates(output.new_ones(len(output)))], 1)
        if self.copies is None:
            return Factors(rows, wide_projection, wide_projection)
        return Factors(rows, wide_projection, torch.cat([working, _coordinates(self.copies["bias"])], 1))


def _coordinates(values: Tensor) -> Tensor:
    """Return numbers (N,) as the first of the coordinates (N, BIAS_COORDINATES) that hold the bias."""
    return nn.functional.pad(values[:, None], (0, BIAS_COORDINATES - 1))


def random_vectors(count: int, d_model: int) -> nn.Parameter:
    """Return random vectors of length about 1: scaled by sqrt(d_model), their coordinates match the sinusoids'."""
    vectors = torch.empty(count, d_model)
    if not vectors.is_meta:  # for tensors without values, normal_ would import PyTorch's compiler, which takes a second
        vectors.normal_(std=d_model**-0.5)
    return nn.Parameter(vectors)
