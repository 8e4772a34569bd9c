"""The parts of a layer: attention, feed-forward and what joins them (section 3 of the paper)."""

from collections.abc import Callable
from typing import cast

from torch import Tensor, nn

from nmt.config.schema import ModelConfig
from nmt.model.activations import activation_of
from nmt.model.attention import Attend
from nmt.model.cpu.dropout import Dropout
from nmt.model.norms import norm_of
from nmt.model.positions.base import Transform


class SelfAttention(nn.Module):
    """Multi-head attention of a stream to itself; queries, keys and values come from one product."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = Heads(config)
        self.query_key_value = nn.Linear(config.d_model, sum(self.heads.widths))
        self.output = nn.Linear(config.heads * config.value_size, config.d_model)
        _xavier(self.query_key_value, self.heads.widths)
        _xavier(self.output)

    def project(self, stream: Tensor, transform: Transform | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (T, h, d_k), keys (T, h_kv, d_k) and values (T, h_kv, d_v) of a stream (T, d_model)."""
        queries, keys, values = self.query_key_value(stream).split(self.heads.widths, -1)
        queries, keys, values = self.heads.queries(queries), self.heads.keys(keys), self.heads.values(values)
        if transform is not None:
            queries, keys = transform(queries), transform(keys)
        return queries, keys, values

    def forward(self, stream: Tensor, attend: Attend, transform: Transform | None) -> Tensor:
        """Attend within each sentence of a stream (T, d_model)."""
        queries, keys, values = self.project(stream, transform)
        attended = attend(queries, self.heads.share(keys), self.heads.share(values))
        projected: Tensor = self.output(attended.flatten(-2))
        return projected


class CrossAttention(nn.Module):
    """Multi-head attention of the decoder to the encoder's output."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = Heads(config)
        query_width, *key_value_widths = self.heads.widths
        self.query = nn.Linear(config.d_model, query_width)
        self.key_value = nn.Linear(config.d_model, sum(key_value_widths))
        self.output = nn.Linear(config.heads * config.value_size, config.d_model)
        _xavier(self.query)
        _xavier(self.key_value, key_value_widths)
        _xavier(self.output)

    def project_queries(self, stream: Tensor) -> Tensor:
        """Queries (T, h, d_k) of the decoder's stream (T, d_model)."""
        return self.heads.queries(self.query(stream))

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys (T, h_kv, d_k) and values (T, h_kv, d_v) of the encoder's output (T, d_model)."""
        keys, values = self.key_value(memory).split(self.heads.widths[1:], dim=-1)
        return self.heads.keys(keys), self.heads.values(values)

    def forward(self, stream: Tensor, memory: Tensor, attend: Attend) -> Tensor:
        """Attend from the decoder's stream to the memory of the same sentences."""
        keys, values = self.project_memory(memory)
        attended = attend(self.project_queries(stream), self.heads.share(keys), self.heads.share(values))
        projected: Tensor = self.output(attended.flatten(-2))
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

    def share(self, heads: Tensor) -> Tensor:
        """(T, h_kv, d) to (T, h, d): each head of keys and values serves as many heads of queries."""
        groups = self.count // self.key_value_count
        return heads if groups == 1 else heads.repeat_interleave(groups, dim=1)


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2, or its kin."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation, _, self.gated = activation_of(config)
        inner = [config.d_ff, config.d_ff] if self.gated else [config.d_ff]
        self.inner = nn.Linear(config.d_model, sum(inner))
        self.outer = nn.Linear(config.d_ff, config.d_model)
        _xavier(self.inner, inner)
        _xavier(self.outer)

    def forward(self, stream: Tensor) -> Tensor:
        """Each token by itself: (..., d_model) to (..., d_model)."""
        if self.gated:
            gate, value = self.inner(stream).chunk(2, dim=-1)
            hidden = self.activation(gate) * value
        else:
            hidden = self.activation(self.inner(stream))
        projected: Tensor = self.outer(hidden)
        return projected


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))), the paper's; or, as pre-norm, x + Dropout(Sublayer(LayerNorm(x)))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = norm_of(config).build(config.d_model)
        self.dropout = Dropout(config.dropout)
        self.pre = config.norm_placement == "pre"

    def forward(self, stream: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Run a sub-layer around the residual stream (..., d_model)."""
        return self.after(stream, sublayer(self.before(stream)))

    def before(self, stream: Tensor) -> Tensor:
        """What the sub-layer is given."""
        return cast(Tensor, self.norm(stream)) if self.pre else stream

    def after(self, stream: Tensor, branch: Tensor) -> Tensor:
        """What its output and the stream make together."""
        joined = self.dropout.add(stream, branch)
        return joined if self.pre else cast(Tensor, self.norm(joined))


def _xavier(linear: nn.Linear, blocks: list[int] | None = None) -> None:
    """Glorot's initialisation; a product that serves several purposes is initialised block by block."""
    for block in linear.weight.split(blocks or [linear.out_features]):
        nn.init.xavier_uniform_(block)
    nn.init.zeros_(linear.bias)
