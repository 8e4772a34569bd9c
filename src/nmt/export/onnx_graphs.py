"""The model as two ONNX graphs, in the layout that transformers.js and optimum read: encoder, and decoder with a cache.

The graphs are traced from the model's own layers, which are given the attention to padded blocks that is written here.
So whatever a model computes, the graphs compute. The decoder serves all steps: `use_cache_branch` is false in the first
one, which ignores the cache and projects the encoder's output; later steps take keys and values from the cache.

Shapes: B sentences, S source tokens, L new target tokens, P target tokens in the cache, h heads, V words.
"""

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from nmt.model.attention import ScoreBias, attention_weights, share_heads
from nmt.model.interface import TranslationModel
from nmt.model.positions import Places
from nmt.packages import import_optional
from nmt.text.special import BOS, PAD

OPSET = 17
"""The version of ONNX's operators, which runtimes from 2022 on have."""
ENCODER, DECODER = "encoder_model", "decoder_model_merged"
"""Names of the files."""
PAST, PRESENT = "past_key_values", "present"
KeysAndValues = tuple[Tensor, Tensor]
"""Keys (B, h, places, d_k) and values (B, h, places, d_v)."""


class PaddedSelfAttention:
    """Self-attention of sentences that are padded to one length, after the places of a cache."""

    def __init__(self, batch: Any, mask: Tensor, past: KeysAndValues | None = None) -> None:
        """Attend to all places except those of a mask (..., L, P + L)."""
        self.batch, self.mask, self.past = batch, mask, past
        self.present: KeysAndValues | None = None

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, bias: ScoreBias | None = None) -> Tensor:
        """See `Attend`; the tokens of all sentences follow each other, with padding."""
        blocks = _blocks(self.batch, queries, keys, values)
        heads, own = blocks[0], (blocks[1], blocks[2])
        if self.past is not None:
            own = torch.cat([self.past[0], own[0]], 2), torch.cat([self.past[1], own[1]], 2)
        self.present = own
        added = None
        if bias is not None:
            places = torch.arange(own[0].shape[2])
            asking = places[own[0].shape[2] - heads.shape[2] :]
            added = bias(heads, places - asking[:, None])
        return _mixed(attention_weights(heads, own[0], self.mask, added), own[1])


class PaddedCrossAttention:
    """Attention to the padded output of the encoder, whose keys and values may be in a cache."""

    def __init__(self, batch: Any, mask: Tensor, memory: Tensor, new: Any, past: KeysAndValues) -> None:
        """Project the output (T, d_model); only the first `new` places, all or none, are not yet in the cache."""
        self.batch, self.mask, self.memory, self.new, self.past = batch, mask, memory, new, past
        self.present: KeysAndValues | None = None

    def __call__(self, queries: Tensor, project: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
        """See `AttendSource`."""
        (heads,) = _blocks(self.batch, queries)
        keys, values = _blocks(self.batch, *project(self.memory), heads=heads.shape[1])
        self.present = (
            torch.cat([self.past[0], keys[:, :, : self.new]], 2),
            torch.cat([self.past[1], values[:, :, : self.new]], 2),
        )
        return _mixed(attention_weights(heads, self.present[0], self.mask), self.present[1])


class EncoderGraph(nn.Module):
    """The encoder: (B, S) tokens and mask to (B, S, d_model)."""

    def __init__(self, model: TranslationModel, positions: int) -> None:
        super().__init__()
        self.model: Any = model
        self.positions = positions

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return the encoder's output; the mask is 1 on tokens and 0 on padding."""
        batch, length = tokens.shape
        places = Places(torch.arange(length).expand(batch, length).reshape(-1), self.positions)
        attend = PaddedSelfAttention(batch, (mask == 0)[:, None, None])
        stream = self.model.embed("source", tokens.reshape(-1), places)
        transform = self.model.transform(places)
        for layer in self.model.encoder:
            stream = layer(stream, transform, attend)
        return cast(Tensor, self.model.encoder_norm(stream)).view(batch, length, -1)


class DecoderGraph(nn.Module):
    """The decoder with its cache: (B, L) tokens to (B, L, V) scores and the cache for the next step."""

    def __init__(self, model: TranslationModel, positions: int) -> None:
        super().__init__()
        self.model: Any = model
        self.positions = positions
        words = len(self.model.projection)
        self.never = torch.zeros(words).index_fill_(0, torch.tensor([PAD, BOS]), -torch.inf)
        """What makes PAD and BOS impossible."""

    def forward(
        self, source_mask: Tensor, tokens: Tensor, memory: Tensor, cached: Tensor, *past: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the scores of the next tokens and the cache: of each layer, keys and values of target and source."""
        batch, length = tokens.shape
        use: Any = cached.to(torch.int64)[0]
        before = past[0].shape[2] * use  # a client may give a cache of any length in the first step
        past = tuple(each[:, :, : each.shape[2] * use] for each in past)
        new = memory.shape[1] * (1 - use)
        memory = memory[:, : new.clamp(min=1)].flatten(0, 1)  # runtimes cannot reshape tensors without rows
        own = before + torch.arange(length)
        places = Places(own.expand(batch, length).reshape(-1), self.positions)
        future, ended = torch.arange(before + length) > own[:, None], (source_mask == 0)[:, None, None]
        stream, transform = self.model.embed("target", tokens.reshape(-1), places), self.model.transform(places)
        present: list[Tensor] = []
        for index, layer in enumerate(self.model.decoder):
            keys, values, source_keys, source_values = past[4 * index : 4 * index + 4]
            attend = PaddedSelfAttention(batch, future, (keys, values))
            cross = PaddedCrossAttention(batch, ended, memory, new, (source_keys, source_values))
            stream = layer(stream, transform, attend, cross)
            present += [*(attend.present or ()), *(cross.present or ())]
        scores = self.model.logits(self.model.decoder_norm(stream))
        return scores.view(batch, length, -1) + self.never, *present


def _blocks(batch: Any, *streams: Tensor, heads: int = 0) -> tuple[Tensor, ...]:
    """Return streams (T, h, d) as blocks (B, heads, places, d), with shared heads repeated."""
    count = heads or streams[0].shape[1]
    return tuple(share_heads(each, count).reshape(batch, -1, count, each.shape[-1]).transpose(1, 2) for each in streams)


def _mixed(weights: Tensor, values: Tensor) -> Tensor:
    """Return attention (T, h d_v) with these weights (B, h, L, places)."""
    return torch.matmul(weights, values).transpose(1, 2).flatten(2).flatten(0, 1)


def cache_names(layers: int) -> list[str]:
    """Return the names of the tensors of a cache, without PAST or PRESENT."""
    sides = ("decoder.key", "decoder.value", "encoder.key", "encoder.value")
    return [f"{index}.{side}" for index in range(layers) for side in sides]


def write_graphs(folder: Path, model: TranslationModel, positions: int) -> None:
    """Write both graphs into a folder; sentences have at most this number of tokens."""
    config = model.config
    batch, source, target, past = 2, 3, 4, 5  # all different, and none is 1, which would be taken for a constant
    tokens, mask = torch.ones(batch, source, dtype=torch.int64), torch.ones(batch, source, dtype=torch.int64)
    text = {0: "batch_size", 1: "encoder_sequence_length"}
    _trace(
        EncoderGraph(model, positions), (tokens, mask), folder / f"{ENCODER}.onnx",
        {"input_ids": text, "attention_mask": text}, {"last_hidden_state": text},
    )  # fmt: skip
    names = cache_names(config.decoder_depth)
    widths = [config.key_size, config.value_size] * (2 * config.decoder_depth)
    lengths = [past, past, source, source] * config.decoder_depth
    cache = [torch.zeros(batch, config.heads, length, width) for length, width in zip(lengths, widths, strict=True)]
    inputs = (mask, torch.ones(batch, target, dtype=torch.int64), torch.zeros(batch, source, config.d_model))
    axes = {name: {0: "batch_size", 2: f"past_{name.split('.')[1]}_sequence_length"} for name in names}
    _trace(
        DecoderGraph(model, positions), (*inputs, torch.tensor([True]), *cache), folder / f"{DECODER}.onnx",
        {
            "encoder_attention_mask": text,
            "input_ids": {0: "batch_size", 1: "decoder_sequence_length"},
            "encoder_hidden_states": text,
            "use_cache_branch": {},
            **{f"{PAST}.{name}": axes[name] for name in names},
        },
        {
            "logits": {0: "batch_size", 1: "decoder_sequence_length"},
            **{f"{PRESENT}.{name}": {0: "batch_size", 2: f"present_{axes[name][2]}"} for name in names},
        },
    )  # fmt: skip


def _trace(
    graph: nn.Module,
    example: tuple[Tensor, ...],
    file: Path,
    inputs: dict[str, dict[int, str]],
    outputs: dict[str, dict[int, str]],
) -> None:
    """Trace a graph and write it; inputs and outputs are given by name, with the names of their dynamic axes."""
    import_optional("onnx")
    for name, expression in (("rms_norm", _rms_norm), ("exp2", _exp2)):
        torch.onnx.register_custom_op_symbolic(f"aten::{name}", expression, OPSET)  # type: ignore[attr-defined]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns that it is the older of two
        torch.onnx.export(
            graph.eval(), example, file, dynamo=False, opset_version=OPSET, input_names=list(inputs),
            output_names=list(outputs), dynamic_axes={**inputs, **outputs},
        )  # fmt: skip


def _rms_norm(graph: Any, stream: Any, shape: Any, weight: Any, epsilon: Any) -> Any:
    """Express the normalisation by the root mean square, for which the exporter has no operator."""
    number = torch.finfo(torch.float32).eps if epsilon.node().mustBeNone() else epsilon.node().t("value").item()
    squares = graph.op("ReduceMean", graph.op("Mul", stream, stream), axes_i=[-1], keepdims_i=1)
    constant = graph.op("Constant", value_t=torch.tensor(number, dtype=torch.float32))
    root = graph.op("Sqrt", graph.op("Add", squares, constant))
    return graph.op("Mul", graph.op("Div", stream, root), weight)


def _exp2(graph: Any, exponents: Any) -> Any:
    """Express powers of two, for which the exporter has no operator."""
    return graph.op("Pow", graph.op("Constant", value_t=torch.tensor(2.0)), exponents)


def quantize(folder: Path) -> None:
    """Write versions of both graphs with weights of 8 bits, named `_quantized`.

    The weights are unsigned: without VNNI, onnxruntime adds products of unsigned and signed numbers in 16 bits, where
    large sums are cut off. Of the tables, only word vectors are quantized: sinusoids in int8 would be too coarse.
    """
    onnx, tools = import_optional("onnx"), import_optional("onnxruntime.quantization")
    for name in (ENCODER, DECODER):
        graph = onnx.load(folder / f"{name}.onnx").graph
        kept = [node.name for node in graph.node if node.op_type == "Gather" and "vectors." not in node.input[0]]
        logging.disable(logging.WARNING)  # it advises a step that only graphs for static quantization need
        try:
            tools.quantize_dynamic(
                folder / f"{name}.onnx", folder / f"{name}_quantized.onnx", op_types_to_quantize=["MatMul", "Gather"],
                per_channel=True, weight_type=tools.QuantType.QUInt8, nodes_to_exclude=kept,
            )  # fmt: skip
        finally:
            logging.disable(logging.NOTSET)
