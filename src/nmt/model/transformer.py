"""The Transformer (section 3 of the paper) over packed streams.

From `TranslationModel` it has `embed` (word vectors plus positions, then dropout), `transform` (what positions do to
queries and keys), `attention_spec` (what a plan must know to choose how to attend), and scores of words.

Shapes: T tokens of all source or all target sentences, R rows of a decoding step, V words of the target vocabulary.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.model.attention import Attend, AttendSource, Plan, Recorder
from nmt.model.backends.chosen import backend
from nmt.model.interface import AttentionMaps, TranslationModel
from nmt.model.kv_cache import KVCache
from nmt.model.layers import DecoderLayer, EncoderLayer
from nmt.model.modules import final_norm
from nmt.model.packed import Packed
from nmt.model.positions import Places


class Transformer(TranslationModel):
    """The paper's encoder and decoder."""

    def __init__(self, config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__(config, source_vocabulary, target_vocabulary)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_depth))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_depth))
        self.encoder_norm, self.decoder_norm = final_norm(config), final_norm(config)

    def forward(self, source: Packed, target: Packed, plan: Plan | None = None) -> Tensor:
        """Return the decoder's output (T, d_model) for each target token, given those before it and the source."""
        return self.decode(source, self.encode(source, plan), target, plan)

    def encode(self, source: Packed, plan: Plan | None = None) -> Tensor:
        """Return the encoder's output (T, d_model)."""
        places = Places(source.positions, source.longest)
        attend = (plan or backend().attention)(self.attention_spec(source, source, causal=False))
        transform = self.transform(places)
        stream = self.embed("source", source.tokens, places)
        for layer in self.encoder:
            stream = layer(stream, transform, attend)
        memory: Tensor = self.encoder_norm(stream)
        return memory

    def decode(self, source: Packed, memory: Tensor, target: Packed, plan: Plan | None = None) -> Tensor:
        """Return the decoder's output (T, d_model), given the encoder's."""
        plan = plan or backend().attention
        attend = plan(self.attention_spec(target, target, causal=True))
        attend_memory = plan(self.attention_spec(target, source, causal=False))

        def attend_source(queries: Tensor, project: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
            return attend_memory(queries, *project(memory))

        places = Places(target.positions, target.longest)
        return self._decode(target.tokens, places, lambda layer: (attend, attend_source))

    def start(self, source: Packed) -> KVCache:
        """Return the KV cache of source sentences, with which decoding begins; cross-attention is projected once."""
        memory = self.encode(source)
        layers = cast(Sequence[DecoderLayer], self.decoder)
        return KVCache(source, [layer.cross_attention.project_memory(memory) for layer in layers])

    def advance(self, tokens: Tensor, parents: Tensor, state: KVCache) -> Tensor:
        """Return the scores (R, V) of the next tokens; row r adds `tokens[r]` to row `parents[r]` of the last call."""
        state.begin_step(parents)
        output = self._decode(tokens.to(state.device, non_blocking=True), state.places, state.attention)
        state.end_step()
        return self.logits(output)

    def _decode(
        self, tokens: Tensor, places: Places, attention: Callable[[int], tuple[Attend, AttendSource]]
    ) -> Tensor:
        """Run the decoder over tokens, given how each layer attends to the tokens so far and to the source."""
        transform = self.transform(places)
        stream = self.embed("target", tokens, places)
        for index, layer in enumerate(self.decoder):
            stream = layer(stream, transform, *attention(index))
        output: Tensor = self.decoder_norm(stream)
        return output

    def attention(self, source: Packed, target: Packed) -> list[AttentionMaps]:
        """Return the attention weights of each sentence, in all layers."""
        encoder, decoder = Recorder(), Recorder()
        self.decode(source, self.encode(source, encoder), target, decoder)
        inner, own, cross = (
            torch.stack(layers, 1) for layers in (encoder.weights, decoder.weights[0::2], decoder.weights[1::2])
        )  # each (sentences, layers, heads, queries, keys)
        lengths = zip(source.lengths.tolist(), target.lengths.tolist(), strict=True)
        return [
            AttentionMaps(
                inner[index, ..., :read, :read], own[index, ..., :said, :said], cross[index, ..., :said, :read]
            )
            for index, (read, said) in enumerate(lengths)
        ]
