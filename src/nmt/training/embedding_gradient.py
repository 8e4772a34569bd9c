"""Average the gradient of a matrix that both embeds and scores words, without waiting long after the backward pass."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from torch import Tensor, nn

from nmt.compute import distributed
from nmt.model.interface import TranslationModel
from nmt.model.word_vectors import WordVectors


class EmbeddingGradient:
    """The gradient of the shared matrix in two parts, of the projection and of the embeddings.

    The projection's part is complete when the backward pass has just begun, but the embeddings' part only at its end.
    As a single gradient it would be reduced last, and the reduction would overlap with nothing: it is 30% of all
    gradients of base. Therefore only the projection's part becomes the gradient of the parameter, which is averaged
    during the backward pass. The embeddings have a gradient only for the words of the global batch; these rows are
    averaged at the end, and added.
    """

    def __init__(self, vectors: WordVectors) -> None:
        self._vectors = vectors
        self._matrix = vectors.matrix("projection")
        self._embeddings = self._matrix.detach().requires_grad_()  # the same memory

    @contextmanager
    def apart(self, words: Tensor | None = None, *, rounded: bool = False) -> Iterator[None]:
        """Accumulate the gradient of the embeddings in a tensor of its own in this block.

        At the end, average it and add it to the gradient of the parameter, if the `words` of the global batch are
        given; see `add_average`.
        """
        self._vectors.embeddings = self._embeddings
        try:
            yield
        finally:
            self._vectors.embeddings = None
        if words is not None:
            self.add_average(words, rounded=rounded)

    def add_average(self, words: Tensor, *, rounded: bool) -> None:
        """Average the gradient of the embeddings over all processes, and add it to that of the parameter.

        Args:
            words: The distinct words of the global batch.
            rounded: Whether to average in bf16.
        """
        gradient, self._embeddings.grad = self._embeddings.grad, None
        assert gradient is not None
        assert self._matrix.grad is not None
        words = words.to(gradient.device, non_blocking=gradient.is_cuda)
        rows = distributed.average(gradient.index_select(0, words), rounded=rounded)
        self._matrix.grad.index_add_(0, words, rows)

    def drop(self) -> None:
        """Forget the gradient of the embeddings."""
        self._embeddings.grad = None


def embedding_gradient(model: TranslationModel) -> EmbeddingGradient | None:
    """Return the gradient in two parts if several processes train one matrix for both."""
    if distributed.world_size() == 1:
        return None
    vectors = next(module for module in cast(nn.Module, model).modules() if isinstance(module, WordVectors))
    trained = vectors.tied and vectors.matrix("projection").requires_grad
    return EmbeddingGradient(vectors) if trained else None
