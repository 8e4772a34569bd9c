"""Encoder and decoder layers and their sub-layers (section 3 of the paper).

Training and decoding run the same layers. Only attention differs, and the caller passes it as functions: over packed
streams (`nmt.model.attention`) or to a KV cache (`nmt.model.kv_cache`). `transform`, if positions need one, changes
queries and keys. `Linear`, `split_product` and `Dropout` compute what PyTorch's do, and are faster on some devices.
"""

from collections.abc import Callable

from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.model.activations import activation_of
from nmt.model.attention import Attend, AttendSource
from nmt.model.cpu.dropout import Dropout
from nmt.model.linear import Linear, activated, split_product
from nmt.model.norms import norm_of
from nmt.model.positions.base import Transform, positions_of


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
        stream = self.attention_residual.around(stream, lambda x: self.attention(x, transform, attend))
        return self.feed_forward_residual.around(stream, self.feed_forward)


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
        stream = self.attention_residual.around(stream, lambda x: self.attention(x, transform, attend))
        stream = self.cross_attention_residual.around(stream, lambda x: self.cross_attention(x, attend_source))
        return self.feed_forward_residual.around(stream, self.feed_forward)


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
        queries, keys, values = split_product(self.query_key_value(stream), self.heads.widths)
        queries, keys, values = self.heads.queries(queries), self.heads.keys(keys), self.heads.values(values)
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
        keys, values = split_product(self.key_value(memory), self.heads.widths[1:])
        return self.heads.keys(keys), self.heads.values(values)

    def forward(self, stream: Tensor, attend_source: AttendSource) -> Tensor:
        """Attend from the decoder's stream (T, d_model) to the source of the same sentences."""
        queries = self.heads.queries(self.query(stream))
        projected: Tensor = self.output(attend_source(queries, self.project_memory))
        return projected


class Heads:
    """How the width of a projection divides into heads."""

    def __init__(self, config: ModelConfig) -> None:
        self.count = config.heads
        self.key_value_count = config.key_value_heads
        self.widths = [
            config.heads * config.key_size,
            self.key_value_count * config.key_size,
            self.key_value_count * config.value_size,
        ]

    def queries(self, projected: Tensor) -> Tensor:
        """(T, h d_k) to (T, h, d_k)."""
        return projected.view(projected.shape[0], self.count, -1)

    def keys(self, projected: Tensor) -> Tensor:
        """(T, h_kv d_k) to (T, h_kv, d_k)."""
        return projected.view(projected.shape[0], self.key_value_count, -1)

    values = keys


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2, or the same with another activation, which may be gated."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        activation = activation_of(config)
        self.activation, self.gated = activation.function, activation.gated
        inner = [config.d_ff, config.d_ff] if self.gated else [config.d_ff]
        self.inner = Linear(config.d_model, sum(inner))
        self.outer = Linear(config.d_ff, config.d_model)
        # no Dropout if it is off: the masks on a GPU depend on the number of Dropouts before them
        self.dropout = Dropout(config.activation_dropout) if config.activation_dropout else nn.Identity()
        _glorot(self.inner, inner)
        _glorot(self.outer)

    def forward(self, stream: Tensor) -> Tensor:
        """Transform each token on its own: (..., d_model) to (..., d_model)."""
        if self.gated:
            gate, value = self.inner(stream).chunk(2, dim=-1)
            hidden = self.activation(gate) * value
        else:
            hidden = activated(self.inner, stream, self.activation)
        projected: Tensor = self.outer(self.dropout(hidden))
        return projected


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))), as in the paper; with pre-norm, x + Dropout(Sublayer(LayerNorm(x)))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = norm_of(config).build(config.d_model)
        self.dropout = Dropout(config.dropout)
        self.pre = config.norm_placement == "pre"

    def around(self, stream: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Add a sub-layer's output, after dropout, to the residual stream (..., d_model)."""
        if self.pre:
            return self.dropout.add(stream, sublayer(self.norm(stream)))
        return self.dropout.add_norm(stream, sublayer(stream), self.norm)


def _glorot(linear: nn.Linear, blocks: list[int] | None = None) -> None:
    """Initialise a linear layer with Glorot's uniform distribution, each block of output coordinates separately."""
    for block in linear.weight.split(blocks or [linear.out_features]):
        nn.init.xavier_uniform_(block)
    nn.init.zeros_(linear.bias)
