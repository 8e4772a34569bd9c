"""Encoder and decoder layers and their sub-layers (section 3 of the paper).

Training and decoding run the same layers. Only attention differs, and the caller passes it as functions: over packed
streams (`nmt.model.attention`) or to a KV cache (`nmt.model.kv_cache`). `transform`, if positions need one, changes
queries and keys. The backend computes the operations (`nmt.model.backends.eager` is plain PyTorch).
"""

from collections.abc import Callable
from itertools import pairwise

from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.model.activations import activation_of
from nmt.model.attention import Attend, AttendSource
from nmt.model.backends.chosen import backend
from nmt.model.dropout import Dropout
from nmt.model.modules import Linear, build_norm
from nmt.model.positions import Transform, positions_of


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, stream: Tensor, transform: Transform | None, attend: Attend) -> Tensor:
        """Return the next layer's stream (T, d_model)."""
        return run_sublayers(
            stream,
            (self.attention_residual, lambda x: self.attention(x, transform, attend)),
            (self.feed_forward_residual, self.feed_forward),
        )


class DecoderLayer(nn.Module):
    """Self-attention to the tokens so far, cross-attention to the source, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.attention_residual = Residual(config)
        self.cross_attention = CrossAttention(config)
        self.cross_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self, stream: Tensor, transform: Transform | None, attend: Attend, attend_source: AttendSource
    ) -> Tensor:
        """Return the next layer's stream (T, d_model)."""
        return run_sublayers(
            stream,
            (self.attention_residual, lambda x: self.attention(x, transform, attend)),
            (self.cross_attention_residual, lambda x: self.cross_attention(x, attend_source)),
            (self.feed_forward_residual, self.feed_forward),
        )


class SelfAttention(nn.Module):
    """Multi-head attention of a stream to itself; one product gives queries, keys and values."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = Heads(config)
        self.query_key_value = Linear(config.d_model, sum(self.heads.widths))
        self.output = Linear(config.heads * config.value_size, config.d_model)
        self.score_bias = positions_of(config).score_bias()
        _glorot(self.query_key_value, self.heads.widths)
        _glorot(self.output)

    def project(self, stream: Tensor, transform: Transform | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries (T, h, d_k), keys (T, h_kv, d_k) and values (T, h_kv, d_v) of a stream (T, d_model)."""
        queries, keys, values = self.heads.split(self.query_key_value(stream))
        if transform is not None:
            queries, keys = transform(queries), transform(keys)
        return queries, keys, values

    def forward(self, stream: Tensor, transform: Transform | None, attend: Attend) -> Tensor:
        """Attend within each sentence of a stream (T, d_model)."""
        projected: Tensor = self.output(attend(*self.project(stream, transform), self.score_bias))
        return projected


class CrossAttention(nn.Module):
    """Multi-head attention of the decoder to the encoder's output."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = Heads(config)
        query_width, *key_value_widths = self.heads.widths
        self.query = Linear(config.d_model, query_width)
        self.key_value = Linear(config.d_model, sum(key_value_widths))
        self.output = Linear(config.heads * config.value_size, config.d_model)
        _glorot(self.query)
        _glorot(self.key_value, key_value_widths)
        _glorot(self.output)

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys (T, h_kv, d_k) and values (T, h_kv, d_v) of the encoder's output (T, d_model)."""
        keys, values = self.heads.split(self.key_value(memory), first=1)
        return keys, values

    def forward(self, stream: Tensor, attend_source: AttendSource) -> Tensor:
        """Attend from the decoder's stream (T, d_model) to the source of the same sentences."""
        queries = self.query(stream).unflatten(1, (self.heads.counts[0], -1))
        projected: Tensor = self.output(attend_source(queries, self.project_memory))
        return projected


class Heads:
    """How projections divide into heads of queries, keys and values."""

    def __init__(self, config: ModelConfig) -> None:
        self.counts = [config.heads, config.key_value_heads, config.key_value_heads]
        sizes = config.key_size, config.key_size, config.value_size
        self.widths = [count * size for count, size in zip(self.counts, sizes, strict=True)]

    def split(self, product: Tensor, first: int = 0) -> list[Tensor]:
        """(T, widths of the heads from `first` on) to (T, h, d_k), (T, h_kv, d_k) and (T, h_kv, d_v)."""
        parts = backend().split(product, self.widths[first:])
        return [part.unflatten(1, (count, -1)) for part, count in zip(parts, self.counts[first:], strict=True)]


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2, or the same with another activation, which may be gated."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = activation_of(config)
        inner = [config.d_ff, config.d_ff] if self.activation.gated else [config.d_ff]
        self.inner = Linear(config.d_model, sum(inner))
        self.outer = Linear(config.d_ff, config.d_model)
        # no Dropout if it is off: the masks on a GPU depend on the number of Dropouts before them
        self.dropout = Dropout(config.activation_dropout) if config.activation_dropout else None
        _glorot(self.inner, inner)
        _glorot(self.outer)

    def forward(self, stream: Tensor) -> Tensor:
        """Transform each token on its own: (T, d_model) to (T, d_model)."""
        return backend().feed_forward(stream, self.inner, self.activation, self.dropout, self.outer)


class Residual(nn.Module):
    """The residual connection around a sub-layer, with its dropout and its norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = build_norm(config)
        self.dropout = Dropout(config.dropout)
        self.pre = config.norm_placement == "pre"


def run_sublayers(stream: Tensor, *sublayers: tuple[Residual, Callable[[Tensor], Tensor]]) -> Tensor:
    """Return a stream (T, d_model) after LayerNorm(x + Dropout(Sublayer(x))) for each sub-layer, as in the paper.

    With pre-norm, it is x + Dropout(Sublayer(LayerNorm(x))): the sum and the norm that follows are one operation.
    """
    first = sublayers[0][0]
    if not first.pre:
        for residual, sublayer in sublayers:
            stream = backend().residual_norm(stream, sublayer(stream), residual.dropout, residual.norm)
        return stream
    normed = first.norm(stream)
    for (residual, sublayer), (following, _) in pairwise(sublayers):
        stream, normed = backend().residual_and_norm(stream, sublayer(normed), residual.dropout, following.norm)
    last, sublayer = sublayers[-1]
    return backend().residual(stream, sublayer(normed), last.dropout)


def _glorot(linear: nn.Linear, blocks: list[int] | None = None) -> None:
    """Initialise a linear layer with Glorot's uniform distribution, each block of output coordinates separately."""
    for block in linear.weight.split(blocks or [linear.out_features]):
        nn.init.xavier_uniform_(block)
    nn.init.zeros_(linear.bias)
