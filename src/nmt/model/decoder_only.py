"""A decoder-only model: each source sentence and its translation are one causal stream.

Positions count through both. The loss, and the output that is returned, are those of the target tokens only.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.model.attention import Attend, Plan, Recorder, ScoreBias
from nmt.model.backends.chosen import backend
from nmt.model.interface import AttentionMaps, TranslationModel
from nmt.model.kv_cache import KeysValues, KVCache
from nmt.model.layers import EncoderLayer
from nmt.model.modules import final_norm
from nmt.model.packed import Packed
from nmt.model.positions import Places


class DecoderOnly(TranslationModel):
    """A stack of layers without cross-attention that reads the source, then the translation."""

    def __init__(self, config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__(config, source_vocabulary, target_vocabulary)
        self.decoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.decoder_depth))
        self.decoder_norm = final_norm(config)

    def forward(self, source: Packed, target: Packed, plan: Plan | None = None) -> Tensor:
        """Return the last layer's output (T, d_model) for each target token, given those before it and the source."""
        return self._read(Joined(source, target), plan or backend().attention)

    def attention(self, source: Packed, target: Packed) -> list[AttentionMaps]:
        """See `TranslationModel.attention`."""
        recorder = Recorder()
        self._read(Joined(source, target), recorder)
        weights = torch.stack(recorder.weights, 1)  # (sentences, layers, heads, queries, keys)
        lengths = zip(weights, source.lengths.tolist(), target.lengths.tolist(), strict=True)
        spans = [(each, slice(0, read), slice(read, read + said)) for each, read, said in lengths]
        return [
            AttentionMaps(each[..., read, read], each[..., said, said], each[..., said, read])
            for each, read, said in spans
        ]

    def start(self, source: Packed) -> KVCache:
        """See `TranslationModel.start`; the cache begins with the source."""
        attend = backend().attention(self.attention_spec(source, source, causal=True))
        layers: list[KeysValues] = []

        def keep(queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
            layers.append((keys, values))
            return attend(queries, keys, values, bias)

        places = Places(source.positions, source.longest)
        self._run(self.embed("source", source.tokens, places), places, lambda layer: keep)
        return KVCache(source, cross=[], prefix=layers)

    def advance(self, tokens: Tensor, parents: Tensor, state: KVCache) -> Tensor:
        """See `TranslationModel.advance`."""
        state.begin_step(parents)
        places = state.places
        embedded = self.embed("target", tokens.to(state.device, non_blocking=True), places)
        stream = self._run(embedded, places, lambda layer: state.attention(layer)[0])
        state.end_step()
        return self.logits(self.decoder_norm(stream))

    def _read(self, joined: "Joined", plan: Plan) -> Tensor:
        attend = plan(self.attention_spec(joined.stream, joined.stream, causal=True))
        source = self.embed("source", joined.source.tokens, Places(joined.source.positions, joined.stream.longest))
        target = self.embed("target", joined.target.tokens, Places(joined.target_positions, joined.stream.longest))
        stream = torch.cat([source, target]).index_select(0, joined.order)
        places = Places(joined.stream.positions, joined.stream.longest)
        stream = self._run(stream, places, lambda layer: attend)
        output: Tensor = self.decoder_norm(stream.index_select(0, joined.target_rows))
        return output

    def _run(self, stream: Tensor, places: Places, attend: Callable[[int], Attend]) -> Tensor:
        """Run all layers, given how each attends."""
        transform = self.transform(places)
        for index, layer in enumerate(self.decoder):
            stream = layer(stream, transform, attend(index))
        return stream


class Joined:
    """Each source sentence and its translation as one sentence of a packed stream."""

    def __init__(self, source: Packed, target: Packed) -> None:
        self.source, self.target = source, target
        self.target_positions = target.positions + _per_token(source.lengths, target)
        source_rows = torch.arange(len(source.tokens), device=source.tokens.device)
        source_rows = source_rows + _per_token(target.offsets[:-1], source)
        self.target_rows = torch.arange(len(target.tokens), device=target.tokens.device)
        self.target_rows = self.target_rows + _per_token(source.offsets[1:], target)
        """(Tt,) the rows of target tokens in the stream."""
        self.order = torch.cat([source_rows, self.target_rows]).argsort()
        """(T,) which of all source tokens, followed by all target tokens, each row of the stream is."""
        self.stream = Packed(
            torch.cat([source.tokens, target.tokens]).index_select(0, self.order),
            torch.cat([source.positions, self.target_positions]).index_select(0, self.order),
            source.offsets + target.offsets,
            source.longest + target.longest,  # or less: the exact length would have to wait for the device
        )


def _per_token(values: Tensor, stream: Packed) -> Tensor:
    """Repeat one value per sentence (B,) for each of its tokens."""
    return torch.repeat_interleave(values, stream.lengths, output_size=len(stream.tokens))
