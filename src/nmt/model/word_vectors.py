"""The vectors of the vocabulary: embeddings and the projection before the softmax (section 3.4 of the paper)."""

import math

import torch
from torch import Tensor, nn

from nmt.config.schema import ModelConfig
from nmt.model.linear import Copies, look_up


class WordVectors(nn.Module):
    """One matrix shared by both embeddings and the projection, or one matrix for each of the three."""

    copies: Copies | None = None
    """See `model.working_weights`."""
    embeddings: Tensor | None = None
    """What the embeddings read, if not the matrix itself: the same numbers, with a gradient of their own."""

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
        self.tied = config.tie_embeddings
        self.scale = math.sqrt(config.d_model)

    def forward(self, side: str, tokens: Tensor) -> Tensor:
        """Return the vectors (T, d_model) of tokens, scaled by sqrt(d_model), for the side named source or target."""
        matrix = self.matrix(side) if self.embeddings is None else self.embeddings
        copy = None if self.copies is None else self.working_matrix(side)
        return look_up(tokens, matrix, copy) * self.scale

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
        return nn.functional.linear(output, self.matrix("projection"))


def random_vectors(count: int, d_model: int) -> nn.Parameter:
    """Return random vectors of length about 1: scaled by sqrt(d_model), their coordinates match the sinusoids'."""
    return nn.Parameter(torch.empty(count, d_model).normal_(std=d_model**-0.5))
