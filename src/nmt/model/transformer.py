"""The Transformer (section 3 of the paper) over packed streams.

Shapes: T tokens of all sentences of a side, R rows of a decoding step, V words of the target vocabulary.
"""

import math
from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.config.schema import ModelConfig
from nmt.model.attention import Attend, Plan, plan_attention
from nmt.model.cpu.dropout import Dropout
from nmt.model.kv_cache import DecoderState
from nmt.model.layers import NORMS, CrossAttention, FeedForward, Residual, SelfAttention
from nmt.model.packed import Packed
from nmt.model.positions import SinusoidTable

SMALL = 0.02
"""Standard deviation of small first weights."""


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, stream: Tensor, attend: Attend, rotation: Tensor | None) -> Tensor:
        """(T, d_model) to (T, d_model)."""
        stream = self.attention_residual(stream, lambda x: self.attention(x, attend, rotation))
        output: Tensor = self.feed_forward_residual(stream, self.feed_forward)
        return output


class DecoderLayer(nn.Module):
    """Self-attention to earlier tokens, attention to the encoder's output, then feed-forward."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention = SelfAttention(config)
        self.attention_residual = Residual(config)
        self.cross_attention = CrossAttention(config)
        self.cross_attention_residual = Residual(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, stream: Tensor, attend: Callable[[Tensor], Tensor], cross: Callable[[Tensor], Tensor]) -> Tensor:
        """(T, d_model) to (T, d_model), given what the two attentions make of a stream."""
        stream = self.attention_residual(stream, attend)
        stream = self.cross_attention_residual(stream, cross)
        output: Tensor = self.feed_forward_residual(stream, self.feed_forward)
        return output

    def advance(self, stream: Tensor, state: DecoderState, index: int, rotation: Tensor | None) -> Tensor:
        """(R, d_model) to (R, d_model) for the new token of each row; with few rows, calls of modules count."""
        around, across, along = self.attention_residual, self.cross_attention_residual, self.feed_forward_residual
        stream = around.after(stream, state.attend_self(index, self.attention, around.before(stream), rotation))
        stream = across.after(stream, state.attend_source(index, self.cross_attention, across.before(stream)))
        return along.after(stream, self.feed_forward(along.before(stream)))


class Transformer(nn.Module):
    """Encoder, decoder and the vocabulary's vectors."""

    def __init__(self, config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        self.config = config
        sizes = {"source": source_vocabulary, "target": target_vocabulary, "projection": target_vocabulary}
        if config.tie_embeddings:
            if source_vocabulary != target_vocabulary:
                raise ValueError("tied embeddings need one vocabulary")
            sizes = {"shared": target_vocabulary}
        self.vectors = nn.ParameterDict({name: _vectors(size, config.d_model) for name, size in sizes.items()})
        if config.positions == "learned":
            self.source_positions = _vectors(config.max_positions, config.d_model)
            self.target_positions = _vectors(config.max_positions, config.d_model)
        self.sinusoids = SinusoidTable(config.key_size if config.positions == "rotary" else config.d_model)
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        pre = config.norm_placement == "pre"
        self.encoder_norm = NORMS[config.norm](config.d_model) if pre else nn.Identity()
        self.decoder_norm = NORMS[config.norm](config.d_model) if pre else nn.Identity()
        self.projector: nn.Module | None = None
        """What takes the place of a product with `projection`, where that is prepared."""
        if config.initialization == "small":
            _start_small(self)

    def forward(self, source: Packed, target: Packed) -> Tensor:
        """The decoder's output (T, d_model) for each target token, given those before it and the source."""
        return self.decode(source, self.encode(source), target)

    def encode(self, source: Packed, plan: Plan = plan_attention) -> Tensor:
        """The encoder's output (T, d_model)."""
        attend = plan(source, source, causal=False, head_width=self._head_width)
        rotation = self._rotation(source.positions, source.longest)
        stream = self.embed("source", source.tokens, source.positions, source.longest)
        for layer in cast(Sequence[EncoderLayer], self.encoder):
            stream = layer(stream, attend, rotation)
        memory: Tensor = self.encoder_norm(stream)
        return memory

    def decode(self, source: Packed, memory: Tensor, target: Packed, plan: Plan = plan_attention) -> Tensor:
        """The decoder's output (T, d_model), given the encoder's."""
        attend = plan(target, target, causal=True, head_width=self._head_width)
        attend_source = plan(target, source, causal=False, head_width=self._head_width)
        rotation = self._rotation(target.positions, target.longest)
        stream = self.embed("target", target.tokens, target.positions, target.longest)
        for layer in self._decoder_layers:
            stream = layer(
                stream,
                lambda x, layer=layer: layer.attention(x, attend, rotation),
                lambda x, layer=layer: layer.cross_attention(x, memory, attend_source),
            )
        output: Tensor = self.decoder_norm(stream)
        return output

    def embed(self, side: str, tokens: Tensor, positions: Tensor, longest: int) -> Tensor:
        """Vectors scaled by sqrt(d_model) plus positions (T, d_model), for the side named source or target."""
        vectors = self.vectors["shared" if self.config.tie_embeddings else side]
        stream = F.embedding(tokens, vectors) * math.sqrt(self.config.d_model)
        if self.config.positions == "learned":
            table = self.source_positions if side == "source" else self.target_positions
            stream = stream + F.embedding(positions, table)
        elif self.config.positions == "sinusoidal":
            stream = stream + self.sinusoids(positions, longest, stream.dtype)
        if torch.is_autocast_enabled(stream.device.type):  # so that no pass over the stream is in float32
            stream = stream.to(torch.get_autocast_dtype(stream.device.type))
        dropped: Tensor = self.dropout(stream)
        return dropped

    @property
    def projection(self) -> Tensor:
        """The matrix (V, d_model) before the softmax."""
        return cast(Tensor, self.vectors["shared" if self.config.tie_embeddings else "projection"])

    def logits(self, output: Tensor) -> Tensor:
        """The decoder's output (..., d_model) to scores of each word (..., V)."""
        if self.projector is None:
            return F.linear(output, self.projection)
        scores: Tensor = self.projector(output)
        return scores

    def start(self, source: Packed) -> DecoderState:
        """Encode the source and make ready to decode, a token in each call of `advance`."""
        memory = self.encode(source)
        cross = [layer.cross_attention.project_memory(memory) for layer in self._decoder_layers]
        return DecoderState(source, cross)

    def advance(self, tokens: Tensor, parents: Tensor, state: DecoderState) -> Tensor:
        """Scores (R, V) of the token that follows `tokens` (R,).

        Row r goes on from row `parents[r]` of the call before; in the first call the rows are the sentences.
        The rows of a sentence lie together, and every sentence that is still decoded has the same number.
        """
        state.follow(parents)
        positions = torch.full_like(tokens, state.length)
        rotation = self._rotation(positions, state.length + 1)
        stream = self.embed("target", tokens, positions, state.length + 1)
        for index, layer in enumerate(self._decoder_layers):
            stream = layer.advance(stream, state, index, rotation)
        state.length += 1
        return self.logits(self.decoder_norm(stream))

    def _rotation(self, positions: Tensor, longest: int) -> Tensor | None:
        if self.config.positions != "rotary":
            return None
        return self.sinusoids(positions, longest, self.projection.dtype)

    @property
    def _decoder_layers(self) -> Sequence[DecoderLayer]:
        return cast(Sequence[DecoderLayer], self.decoder)

    @property
    def _head_width(self) -> int:
        return max(self.config.key_size, self.config.value_size)


def _start_small(model: nn.Module) -> None:
    """Give all matrices small weights, so that sub-layers add little to the residual stream at first."""
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=SMALL)


def _vectors(count: int, d_model: int) -> nn.Parameter:
    """Random vectors of length about 1: scaled by sqrt(d_model), their coordinates match the sinusoids'."""
    return nn.Parameter(torch.empty(count, d_model).normal_(std=d_model**-0.5))
