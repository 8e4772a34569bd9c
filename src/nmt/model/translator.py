"""A Transformer that translates on a CPU: the encoder, and each step of the decoder, is one call of `transformer.c`.

`nmt.model.translator_batch` translates with it.
"""

import ctypes
from collections.abc import Sequence
from ctypes import Structure, c_float, c_int32, c_int64, c_void_p
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.model.activations import activation_of
from nmt.model.interface import TranslationModel
from nmt.model.kernels.c.library import LANES, computes_in_c
from nmt.model.kernels.c.products import Matrix, PackedMatrix
from nmt.model.layers import DecoderLayer, EncoderLayer
from nmt.model.modules import KNOWN_NORMS
from nmt.model.positions import Places
from nmt.model.transformer import Transformer

IN_C = (torch.float32, torch.bfloat16, torch.int8)
"""The types of numbers in which the operations in C multiply."""
ACTIVATIONS = (F.relu, F.gelu, F.silu)
"""The activations of `transformer.c`, in its order."""


class _Norm(Structure):
    _fields_ = (("gain", c_void_p), ("bias", c_void_p), ("eps", c_float))


class _Layer(Structure):
    _fields_ = (("norms", _Norm * 3), ("matrices", Matrix * 7))


def fields_of(kind: type, names: str) -> list[tuple[str, type]]:
    """Return fields of a structure that have the same type."""
    return [(name, kind) for name in names.split()]


class _Model(Structure):
    _fields_ = (
        *fields_of(c_void_p, "encoder decoder"),
        *fields_of(c_int64, "encoder_depth decoder_depth width heads key_heads key_width value_width inner_width"),
        *fields_of(c_int32, "norms_first activation gated"),
        *fields_of(_Norm, "encoder_norm decoder_norm"),
        *fields_of(c_void_p, "source_words target_words"),
        ("scale", c_float),
        *fields_of(c_void_p, "source_positions target_positions rotation"),
        ("projection", Matrix),
    )


def can_translate(model: TranslationModel) -> bool:
    """Return whether a `Translator` can be made of a model: if there is a compiler, of nearly all Transformers.

    It cannot be made of a subclass, which may compute something else.
    """
    if type(model) is not Transformer or not computes_in_c(torch.empty(0)):
        return False
    config, activation = model.config, activation_of(model.config)
    norm = model.encoder[0].attention_residual.norm if len(model.encoder) else None
    widths = config.d_model, config.key_size, config.value_size
    return (
        type(norm) in KNOWN_NORMS
        and activation.function in ACTIVATIONS
        and ":" not in config.positions
        and not model.positions.biases_scores
        and all(width % LANES == 0 for width in widths)
    )


class Translator:
    """A copy of a Transformer; later changes of the model do not affect it. Any number of threads may use it."""

    def __init__(self, model: TranslationModel, numbers: torch.dtype, longest: int) -> None:
        """Copy a model that `can_translate`.

        Args:
            model: the model.
            numbers: the type in which weights, and the rows that they multiply, are rounded for products.
            longest: no sentence has more tokens.
        """
        assert isinstance(model, Transformer)
        config, activation, vectors = model.config, activation_of(model.config), model.vectors
        self._numbers, self._kept = numbers, list[object]()
        self.key_value_numbers = config.key_value_heads * (config.key_size + config.value_size)
        self.words, pre = len(model.projection), config.norm_placement == "pre"
        encoder, decoder = ([self._layer(layer) for layer in layers] for layers in (model.encoder, model.decoder))
        self.projection = self._matrix(model.projection, vectors.bias)
        self.library = self.projection.library
        source_words = self._address(vectors.matrix("source"))
        rotation = model.positions.rotation(Places(torch.arange(longest), longest), torch.float32)
        self.struct = _Model(
            encoder=self._array(encoder), decoder=self._array(decoder),
            encoder_depth=len(encoder), decoder_depth=len(decoder), width=config.d_model, heads=config.heads,
            key_heads=config.key_value_heads, key_width=config.key_size, value_width=config.value_size,
            inner_width=config.d_ff, norms_first=pre, activation=ACTIVATIONS.index(activation.function),
            gated=activation.gated, encoder_norm=self._norm(model.encoder_norm) if pre else _Norm(),
            decoder_norm=self._norm(model.decoder_norm) if pre else _Norm(),
            source_words=source_words,
            target_words=source_words if vectors.tied else self._address(vectors.matrix("target")),
            scale=vectors.scale, source_positions=self._positions(model, "source", longest),
            target_positions=self._positions(model, "target", longest),
            rotation=None if rotation is None else self._address(rotation), projection=self.projection.structure,
        )  # fmt: skip
        inner = config.d_ff * (2 if activation.gated else 1)
        self.row_widths = {
            "stream": config.d_model,
            "normed": config.d_model,
            "projected": max(config.heads * config.key_size + self.key_value_numbers, inner),
            "attended": config.heads * config.value_size,
            "hidden": config.d_ff,
        }

    def _positions(self, model: Transformer, side: str, longest: int) -> int | None:
        """Return the address of what is added to the vectors of words at each position, if anything is."""
        learned = getattr(model, f"{side}_positions", None)
        count = longest if learned is None else len(learned)
        added = model.positions.add(
            torch.zeros(count, model.config.d_model), Places(torch.arange(count), count), learned
        )
        return self._address(added) if added.any() else None

    def _layer(self, layer: nn.Module) -> _Layer:
        assert isinstance(layer, EncoderLayer | DecoderLayer)
        attention, inner, outer = layer.attention, layer.feed_forward.inner, layer.feed_forward.outer
        residuals = [layer.attention_residual, layer.feed_forward_residual]
        products = [attention.query_key_value, attention.output, inner, outer]
        if isinstance(layer, DecoderLayer):
            residuals.append(layer.cross_attention_residual)
            cross = layer.cross_attention
            products += [cross.query, cross.output, cross.key_value]
        matrices = [self._matrix(each.weight, each.bias).structure for each in products]
        return _Layer((_Norm * 3)(*(self._norm(each.norm) for each in residuals)), (Matrix * 7)(*matrices))

    def _norm(self, norm: nn.Module) -> _Norm:
        norm = cast(nn.LayerNorm | nn.RMSNorm, norm)
        bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
        eps = torch.finfo(torch.float32).eps if norm.eps is None else norm.eps
        return _Norm(self._address(norm.weight), None if bias is None else self._address(bias), eps)

    def _matrix(self, weight: Tensor, bias: Tensor | None) -> PackedMatrix:
        matrix = PackedMatrix(weight.detach().float(), None if bias is None else bias.detach().float(), self._numbers)
        self._kept.append(matrix)
        return matrix

    def _address(self, numbers: Tensor) -> int:
        numbers = numbers.detach().float().contiguous().clone()
        self._kept.append(numbers)
        return numbers.data_ptr()

    def _array(self, layers: Sequence[_Layer]) -> int:
        array = (_Layer * len(layers))(*layers)
        self._kept.append(array)
        return ctypes.addressof(array)
