"""Stacks of layers that run as one operation in C, for the architectures that it knows."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.model.activations import activation_of
from nmt.model.cpu.prepared_layers import PackedLinear, PreparedNorm
from nmt.model.interface import TranslationModel
from nmt.model.kernels.c.layers import Cache, Layers, LayerWeights, Shape
from nmt.model.kernels.c.library import LANES
from nmt.model.kv_cache import KVCache
from nmt.model.layers import DecoderLayer, EncoderLayer, Residual
from nmt.model.norms import LAYER, norm_of
from nmt.model.packed import Packed
from nmt.model.positions import Places


class FusedEncoder:
    """Runs all layers over source sentences."""

    def __init__(self, model: TranslationModel) -> None:
        self.layers, self.rotation = _layers(model, _of_type(model, EncoderLayer)), model.positions.rotation

    def __call__(self, stream: Tensor, places: Places, source: Packed) -> Tensor:
        """Return the last layer's stream (T, d_model), given the embeddings (T, d_model) of the source."""
        lengths = source.lengths.long()
        starts = torch.arange(len(stream)) - source.positions
        lengths = lengths.repeat_interleave(lengths)
        return self.layers.encode(stream, self.rotation(places, stream.dtype), starts, lengths, source.longest)


class FusedDecoder:
    """Runs all layers of a decoding step."""

    def __init__(self, model: TranslationModel) -> None:
        self.layers, self.rotation = _layers(model, _of_type(model, DecoderLayer)), model.positions.rotation

    def __call__(self, stream: Tensor, places: Places, state: KVCache) -> Tensor:
        """Return the last layer's stream (R, d_model), given the embeddings (R, d_model) of the rows' tokens."""
        sources = state.sentence_of_row if state.shared is None else state.shared.of_sentence[state.sentence_of_row]
        lengths = state.source_lengths[state.sentence_of_row]
        cache = Cache(state.past, state.cross, state.mask, state.used, state.sentences, sources, lengths)
        return self.layers.decode(stream, self.rotation(places, stream.dtype), cache)


def fuse(model: TranslationModel) -> None:
    """Let a model, whose layers are prepared for products in C, run them as one operation if it can."""
    if _can_fuse(model):
        model.fused_encoder, model.fused_decoder = FusedEncoder(model), FusedDecoder(model)


def _can_fuse(model: TranslationModel) -> bool:
    """Return whether the operations in C compute the layers of a model."""
    config, activation = model.config, activation_of(model.config)
    widths = config.d_model, config.key_size, config.value_size
    return (
        bool(_of_type(model, DecoderLayer))
        and norm_of(config) is LAYER
        and activation.function is F.relu
        and not activation.gated
        and not model.positions.biases_scores
        and all(width % LANES == 0 for width in widths)
    )


def _of_type(model: TranslationModel, kind: type[EncoderLayer | DecoderLayer]) -> list[EncoderLayer | DecoderLayer]:
    return [module for module in model.modules() if isinstance(module, kind)]


def _layers(model: TranslationModel, layers: Sequence[EncoderLayer | DecoderLayer]) -> Layers:
    config = model.config
    norm = cast(PreparedNorm, layers[0].attention_residual.norm)
    widths = config.heads, config.key_value_heads, config.key_size, config.value_size
    shape = Shape(config.d_model, *widths, config.d_ff, norm.eps, config.norm_placement == "pre")
    return Layers([_weights(layer) for layer in layers], shape)


def _weights(layer: EncoderLayer | DecoderLayer) -> LayerWeights:
    attention, feed_forward = layer.attention, layer.feed_forward
    residuals = [layer.attention_residual, layer.feed_forward_residual]
    products: list[nn.Module] = [attention.query_key_value, attention.output, feed_forward.inner, feed_forward.outer]
    if isinstance(layer, DecoderLayer):
        residuals.append(layer.cross_attention_residual)
        products += [layer.cross_attention.query, layer.cross_attention.output]
    return LayerWeights([_norm(each) for each in residuals], [cast(PackedLinear, each).matrix for each in products])


def _norm(residual: Residual) -> tuple[Tensor, Tensor]:
    norm = cast(PreparedNorm, residual.norm)
    return norm.weight, norm.bias
