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
from nmt.model.attention import Attend, Plan, Recorder, plan_attention
from nmt.model.cpu.dropout import Dropout
from nmt.model.interface import AttentionMaps, Stack
from nmt.model.kv_cache import DecoderState
from nmt.model.layers import CrossAttention, FeedForward, Residual, SelfAttention
from nmt.model.norms import norm_of
from nmt.model.packed import Packed
from nmt.model.positions.base import Places, Transform, positions_of

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

    def forward(self, stream: Tensor, attend: Attend, transform: Transform | None) -> Tensor:
        """(T, d_model) to (T, d_model)."""
        stream = self.attention_residual(stream, lambda x: self.attention(x, attend, transform))
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

    def advance(self, stream: Tensor, state: DecoderState, index: int, transform: Transform | None) -> Tensor:
        """(R, d_model) to (R, d_model) for the new token of each row; with few rows, calls of modules count."""
        around, across, along = self.attention_residual, self.cross_attention_residual, self.feed_forward_residual
        stream = around.after(stream, state.attend_self(index, self.attention, around.before(stream), transform))
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
        self.positions = positions_of(config)
        for side, size in self.positions.table_sizes().items():
            self.register_parameter(f"{side}_positions", _vectors(size, config.d_model))
        self.dropout = Dropout(config.dropout)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        pre = config.norm_placement == "pre"
        self.encoder_norm = norm_of(config).build(config.d_model) if pre else nn.Identity()
        self.decoder_norm = norm_of(config).build(config.d_model) if pre else nn.Identity()
        self.projector: nn.Module | None = None
        """What takes the place of a product with `projection`, where that is prepared."""
        if config.initialization == "small":
            _start_small(self)

    @staticmethod
    def stacks(config: ModelConfig) -> tuple[Stack, ...]:
        """See `TranslationModel.stacks`."""
        return (
            Stack("encoder", config.layers, reads_source=True, reads_target=False, cross_attention=False),
            Stack("decoder", config.layers, reads_source=False, reads_target=True, cross_attention=True),
        )

    def attention(self, source: Packed, target: Packed) -> AttentionMaps:
        """See `TranslationModel.attention`."""
        encoder, decoder = Recorder(), Recorder()
        self.decode(source, self.encode(source, encoder), target, decoder)
        kinds = (encoder.weights, decoder.weights[0::2], decoder.weights[1::2])
        return AttentionMaps(*(torch.cat(layers) for layers in kinds))

    def forward(self, source: Packed, target: Packed) -> Tensor:
        """The decoder's output (T, d_model) for each target token, given those before it and the source."""
        return self.decode(source, self.encode(source), target)

    def encode(self, source: Packed, plan: Plan = plan_attention) -> Tensor:
        """The encoder's output (T, d_model)."""
        attend = plan(source, source, causal=False, head_width=self._head_width)
        places = Places(source.positions, source.longest)
        transform = self._transform(places)
        stream = self.embed("source", source.tokens, places)
        for layer in cast(Sequence[EncoderLayer], self.encoder):
            stream = layer(stream, attend, transform)
        memory: Tensor = self.encoder_norm(stream)
        return memory

    def decode(self, source: Packed, memory: Tensor, target: Packed, plan: Plan = plan_attention) -> Tensor:
        """The decoder's output (T, d_model), given the encoder's."""
        attend = plan(target, target, causal=True, head_width=self._head_width)
        attend_source = plan(target, source, causal=False, head_width=self._head_width)
        places = Places(target.positions, target.longest)
        transform = self._transform(places)
        stream = self.embed("target", target.tokens, places)
        for layer in self._decoder_layers:
            stream = layer(
                stream,
                lambda x, layer=layer: layer.attention(x, attend, transform),
                lambda x, layer=layer: layer.cross_attention(x, memory, attend_source),
            )
        output: Tensor = self.decoder_norm(stream)
        return output

    def embed(self, side: str, tokens: Tensor, places: Places) -> Tensor:
        """Vectors scaled by sqrt(d_model) plus positions (T, d_model), for the side named source or target."""
        vectors = self.vectors["shared" if self.config.tie_embeddings else side]
        stream = F.embedding(tokens, vectors) * math.sqrt(self.config.d_model)
        stream = self.positions.add(stream, places, getattr(self, f"{side}_positions", None))
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
        places = Places(torch.full_like(tokens, state.length), state.length + 1)
        transform = self._transform(places)
        stream = self.embed("target", tokens, places)
        for index, layer in enumerate(self._decoder_layers):
            stream = layer.advance(stream, state, index, transform)
        state.length += 1
        return self.logits(self.decoder_norm(stream))

    def _transform(self, places: Places) -> Transform | None:
        return self.positions.transform(places, self.projection.dtype)

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
