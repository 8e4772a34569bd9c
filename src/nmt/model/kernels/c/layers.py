"""All layers of an encoder, or of a decoding step with a KV cache, by one operation in C."""

import ctypes
from collections.abc import Callable, Sequence
from ctypes import Structure, c_float, c_int32, c_int64, c_void_p
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.model.kernels.c.library import LANES
from nmt.model.kernels.c.products import Matrix, PackedMatrix, scratch_for

Norm = tuple[Tensor, Tensor]
"""Gain and bias of a LayerNorm."""
KeysValues = tuple[Tensor, Tensor]


class LayerWeights(NamedTuple):
    """The weights of a layer."""

    norms: Sequence[Norm]
    """Of self-attention, feed-forward and, in a decoder, cross-attention."""
    matrices: Sequence[PackedMatrix]
    """Queries, keys and values; output; the two of feed-forward; in a decoder, queries to the source; their output."""


class Shape(NamedTuple):
    """The widths of the layers."""

    width: int
    heads: int
    key_heads: int
    key_width: int
    value_width: int
    inner_width: int
    eps: float
    norms_first: bool
    """Whether the norms stand before the sub-layers."""


class Cache(NamedTuple):
    """What the rows of a step attend to."""

    past: Sequence[KeysValues]
    """Keys and values of each layer (S, h_kv, P, d), whose last slots in use are those of the rows' new tokens."""
    cross: Sequence[KeysValues]
    """The same of the sources (G, h_kv, L, d)."""
    mask: Tensor
    """(R, P) 0 if the row can see the slot."""
    used: int
    """Slots in use."""
    sentences: int
    sources: Tensor
    """(R,) int64 the source of each row."""
    source_lengths: Tensor
    """(R,) int64 the length of the source of each row."""


class _Layer(Structure):
    _fields_ = (("norms", c_void_p * 6), ("matrices", Matrix * 6))


class _Step(Structure):
    _fields_ = (
        *((name, c_void_p) for name in ("layers", "caches")),
        *((name, c_int64) for name in ("depth", "width", "heads", "key_heads", "key_width", "value_width")),
        ("eps", c_float),
        ("norms_first", c_int32),
        *((name, c_int64) for name in ("rows", "rows_per_sentence", "slots", "used", "source_slots")),
        *((name, c_void_p) for name in ("mask", "rotation", "sources", "source_lengths")),
        *((name, c_void_p) for name in ("stream", "normed", "projected", "attended", "buffers")),
        ("buffer", c_int64),
        ("scratch", c_void_p),
    )


class Layers:
    """The layers of an encoder or a decoder, in float32. Their widths are multiples of LANES."""

    def __init__(self, layers: Sequence[LayerWeights], shape: Shape) -> None:
        self.layers, self.shape = layers, shape
        self.structures = (_Layer * len(layers))(*map(_structure, layers))
        matrices = [matrix for layer in layers for matrix in layer.matrices]
        self.library, self.row_bytes = matrices[0].library, max(matrix.row_bytes for matrix in matrices)
        heads = shape.heads * shape.key_width + shape.key_heads * (shape.key_width + shape.value_width)
        self.widths = shape.width, max(heads, shape.inner_width), shape.heads * shape.value_width

    def decode(self, stream: Tensor, rotation: Tensor | None, cache: Cache) -> Tensor:
        """Run all layers over a stream (R, d_model), rotating queries and keys by the sinusoids (R, d_k) if any."""
        slots, source_slots = cache.past[0][0].shape[2], cache.cross[0][0].shape[2]
        blocks = [block for pair in zip(cache.past, cache.cross, strict=True) for each in pair for block in each]
        addresses = (c_void_p * len(blocks))(*(block.data_ptr() for block in blocks))
        step = _Step(
            caches=ctypes.addressof(addresses), rows_per_sentence=len(stream) // cache.sentences, slots=slots,
            used=cache.used, source_slots=source_slots, mask=cache.mask.data_ptr(), sources=cache.sources.data_ptr(),
            source_lengths=cache.source_lengths.data_ptr(),
        )  # fmt: skip
        return self._run(self.library.decode, step, stream, rotation, max(slots, source_slots))

    def encode(self, stream: Tensor, rotation: Tensor | None, starts: Tensor, lengths: Tensor, longest: int) -> Tensor:
        """Run all layers over sentences (T, d_model), given the first token and the length of each row's sentence."""
        step = _Step(sources=starts.data_ptr(), source_lengths=lengths.data_ptr())
        return self._run(self.library.encode, step, stream, rotation, longest)

    def _run(
        self, operation: Callable[[Any], None], step: _Step, stream: Tensor, rotation: Tensor | None, longest: int
    ) -> Tensor:
        """Run an operation, for each row of which `longest` keys have room."""
        stream = stream.clone(memory_format=torch.contiguous_format)
        scratch = [torch.empty(len(stream), width) for width in self.widths]
        step.buffer = -(-longest // LANES) * LANES
        scratch.append(torch.empty(torch.get_num_threads(), 2, step.buffer))
        scratch.append(scratch_for(self.row_bytes, len(stream)))
        width, heads, key_heads, key_width, value_width, _, eps, norms_first = self.shape
        step.layers, step.depth, step.rows = ctypes.addressof(self.structures), len(self.layers), len(stream)
        step.width, step.heads, step.key_heads = width, heads, key_heads
        step.key_width, step.value_width, step.eps, step.norms_first = key_width, value_width, eps, norms_first
        step.rotation = None if rotation is None else rotation.data_ptr()
        step.stream = stream.data_ptr()
        step.normed, step.projected, step.attended, step.buffers, step.scratch = (each.data_ptr() for each in scratch)
        operation(ctypes.byref(step))
        return stream


def _structure(layer: LayerWeights) -> _Layer:
    norms = (c_void_p * 6)(*(each.data_ptr() for norm in layer.norms for each in norm))
    return _Layer(norms, (Matrix * 6)(*(matrix.structure for matrix in layer.matrices)))
