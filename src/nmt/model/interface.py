"""What every architecture offers to training, search, exports and reports.

Architectures share word vectors and positions at the bottom, and the scores of all words at the top.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.model.attention import AttentionSpec, Plan
from nmt.model.backends.chosen import backend
from nmt.model.dropout import Dropout
from nmt.model.kv_cache import KVCache
from nmt.model.packed import Packed
from nmt.model.positions import Places, Transform, positions_of
from nmt.model.word_vectors import WordVectors, random_vectors


class AttentionMaps(NamedTuple):
    """Attention weights (layers, heads, queries, keys) of one sentence pair, without padding."""

    encoder: Tensor
    """From source tokens to source tokens."""
    decoder: Tensor
    """From target tokens to target tokens."""
    cross: Tensor
    """From target tokens to source tokens."""


class TranslationModel(nn.Module):
    """A translation model: embeds tokens and scores words. Architectures add the layers between.

    The names of the layers' parameters begin with "encoder.N." or "decoder.N.".
    """

    def __init__(self, config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.config = config
        self.vectors = WordVectors(config, source_vocabulary, target_vocabulary)
        self.positions = positions_of(config)
        for side in ("source", "target") if self.positions.learned else ():
            self.register_parameter(f"{side}_positions", random_vectors(config.max_positions, config.d_model))
        self.dropout = Dropout(config.dropout)

    def forward(self, source: Packed, target: Packed, plan: Plan | None = None) -> Tensor:
        """Return the last layer's output (T, d_model) for each target token, given those before it and the source.

        Attention is computed as the backend says, or `plan`, if there is one.
        """
        raise NotImplementedError

    def start(self, source: Packed) -> KVCache:
        """Read the source and return a KV cache for `advance`."""
        raise NotImplementedError

    def advance(self, tokens: Tensor, parents: Tensor, state: KVCache) -> Tensor:
        """Return the scores (R, V) of the tokens that follow `tokens` (R,).

        Row r continues row `parents[r]` of the previous call; in the first call, row r is sentence r.
        The rows of a sentence are adjacent. Tokens and parents are on the CPU or on the device; in the latter case,
        `KVCache.keep` must tell which sentences leave.
        """
        raise NotImplementedError

    def attention(self, source: Packed, target: Packed) -> list[AttentionMaps]:
        """Return the attention weights of each sentence pair."""
        raise NotImplementedError

    def embed(self, side: str, tokens: Tensor, places: Places) -> Tensor:
        """Return scaled word vectors plus positions (T, d_model), for the side named source or target."""
        return backend().dropout(self._add_positions(side, tokens, places), self.dropout)

    def _add_positions(self, side: str, tokens: Tensor, places: Places) -> Tensor:
        return self.positions.add(self.vectors(side, tokens), places, getattr(self, f"{side}_positions", None))

    @torch.no_grad()
    def build_position_tables(self, longest: int) -> None:
        """Compute the tables for sentences of at most `longest` tokens now, in the precision of training.

        A compiled forward pass would otherwise be compiled again when it meets a longer sentence.
        """
        token = torch.zeros(1, dtype=torch.int64, device=self.projection.device)
        places = Places(token, longest)
        self._add_positions("source", token, places)
        self.transform(places)

    @property
    def projection(self) -> Tensor:
        """The matrix (V, d_model) before the softmax."""
        return self.vectors.matrix("projection")

    @property
    def precision(self) -> torch.dtype:
        """The precision of the residual stream and of matrix products."""
        return self.vectors.working_matrix("projection").dtype

    def logits(self, output: Tensor) -> Tensor:
        """Return the scores (..., V) of all words, given the last layer's output (..., d_model)."""
        return self.vectors.logits(output)

    def transform(self, places: Places) -> Transform | None:
        """Return what self-attention applies to its queries and keys."""
        rotation = self.positions.rotation(places, self.precision)
        return None if rotation is None else partial(backend().rotate, rotation=rotation)

    def attention_spec(self, queries: Packed, keys: Packed, *, causal: bool) -> AttentionSpec:
        """Return what plans must know of attention from `queries` to `keys`; self-attention has one stream for both."""
        width = max(self.config.key_size, self.config.value_size)
        biased = queries is keys and self.positions.biases_scores
        dropout = self.config.attention_dropout if self.training else 0.0
        return AttentionSpec(queries, keys, causal, width, self.precision, biased, dropout)


def trainable(model: TranslationModel) -> list[nn.Parameter]:
    """Return the parameters that training changes."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches one of the patterns, in which * stands for any text."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
