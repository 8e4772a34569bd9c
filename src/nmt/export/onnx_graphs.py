"""The model as two ONNX graphs, in the layout that transformers.js and optimum read: encoder, and decoder with a cache.

The graphs are traced from the model's own layers, which are given the attention to padded blocks that is written here.
So whatever a model computes, the graphs compute. The decoder serves all steps: `use_cache_branch` is false in the first
one, which ignores the cache and projects the encoder's output; later steps take keys and values from the cache.

Shapes: B sentences, S source tokens, L new target tokens, P target tokens in the cache, h heads, V words.
"""

import logging
import warnings
from collections.abc import Sequence
from functools import partial
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
QUANTIZED = "_quantized"
"""The ending of the names of graphs with int8 weights."""
PAST, PRESENT = "past_key_values", "present"
SIDES = ("decoder.key", "decoder.value", "encoder.key", "encoder.value")
"""The cache of a layer."""
Axes = dict[str, dict[int, str]]
"""Inputs or outputs by name, with the names of their dynamic axes."""


def attend(
    mask: Tensor,
    past: Sequence[Tensor],
    present: list[Tensor],
    new: Any,
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    bias: ScoreBias | None = None,
) -> Tensor:
    """Return attention (T, h d_v) of sentences padded to one length to a cache and the first `new` keys of their own.

    No query sees what the mask (B or 1, 1, L or 1, keys) is true for. All keys and values are appended to `present`.
    """
    batch, count = mask.shape[0], queries.shape[1]
    queries, keys, values = (
        share_heads(each, count).reshape(batch, -1, count, each.shape[-1]).transpose(1, 2)
        for each in (queries, keys, values)
    )
    if past:
        keys, values = (torch.cat([old, each[:, :, :new]], 2) for old, each in zip(past, (keys, values), strict=True))
    present.extend((keys, values))
    places = torch.arange(keys.shape[2])
    distances = places - places[keys.shape[2] - queries.shape[2] :, None]
    weights = attention_weights(queries, keys, mask, None if bias is None else bias(queries, distances))
    return torch.matmul(weights, values).transpose(1, 2).flatten(2).flatten(0, 1)


class Graph(nn.Module):
    """A part of a model, for sentences of at most `positions` tokens."""

    def __init__(self, model: TranslationModel, positions: int) -> None:
        super().__init__()
        self.model: Any = model
        self.positions = positions

    def begin(self, language: str, tokens: Tensor, positions: Tensor) -> tuple[Tensor, Any]:
        """Return the input of the first layer, and what turns queries and keys, for tokens (B, L) at positions (L,)."""
        places = Places(positions.expand(tokens.shape).reshape(-1), self.positions)
        return self.model.embed(language, tokens.reshape(-1), places), self.model.transform(places)


class EncoderGraph(Graph):
    """The encoder."""

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """Return the output (B, S, d_model) for tokens (B, S) and a mask (B, S), 1 on tokens and 0 on padding."""
        batch, length = tokens.shape
        stream, transform = self.begin("source", tokens, torch.arange(length))
        for layer in self.model.encoder:
            stream = layer(stream, transform, partial(attend, (mask == 0)[:, None, None], (), [], None))
        return cast(Tensor, self.model.encoder_norm(stream)).view(batch, length, -1)


class DecoderGraph(Graph):
    """The decoder with its cache."""

    def forward(
        self, source_mask: Tensor, tokens: Tensor, memory: Tensor, cached: Tensor, *past: Tensor
    ) -> tuple[Tensor, ...]:
        """Return the scores (B, L, V) after each token (B, L), and the cache for the next step.

        The cache of each layer is keys and values of target and source. PAD and BOS are impossible.
        """
        batch, length = tokens.shape
        use: Any = cached.to(torch.int64)[0]
        before = past[0].shape[2] * use  # a client may give a cache of any length in the first step
        past = tuple(each[:, :, : each.shape[2] * use] for each in past)
        new = memory.shape[1] * (1 - use)
        memory = memory[:, : new.clamp(min=1)].flatten(0, 1)  # runtimes cannot reshape tensors without rows
        positions = before + torch.arange(length)
        future = (torch.arange(before + length) > positions[:, None]).expand(batch, 1, -1, -1)
        ended = (source_mask == 0)[:, None, None]
        stream, transform = self.begin("target", tokens, positions)
        present: list[Tensor] = []
        for index, layer in enumerate(self.model.decoder):
            own = partial(attend, future, past[4 * index : 4 * index + 2], present, None)
            cross = partial(attend, ended, past[4 * index + 2 : 4 * index + 4], present, new)
            stream = layer(
                stream, transform, own, lambda queries, project, cross=cross: cross(queries, *project(memory))
            )
        scores = self.model.logits(self.model.decoder_norm(stream))
        never = torch.zeros(len(self.model.projection)).index_fill_(0, torch.tensor([PAD, BOS]), -torch.inf)
        return scores.view(batch, length, -1) + never, *present


def write_graphs(folder: Path, model: TranslationModel, positions: int) -> None:
    """Write both graphs into a folder; sentences have at most this number of tokens."""
    config = model.config
    batch, source, target, past = 2, 3, 4, 5  # all different, and none is 1, which would be taken for a constant
    tokens, mask, prefix = (torch.ones(batch, length, dtype=torch.int64) for length in (source, source, target))
    text, new = {0: "batch_size", 1: "encoder_sequence_length"}, {0: "batch_size", 1: "decoder_sequence_length"}
    encoder, decoder = EncoderGraph(model, positions), DecoderGraph(model, positions)
    inputs: Axes = {"input_ids": text, "attention_mask": text}
    trace(encoder, (tokens, mask), folder / f"{ENCODER}.onnx", inputs, {"last_hidden_state": text})
    names = [f"{index}.{side}" for index in range(config.decoder_depth) for side in SIDES]
    sizes = [(past, config.key_size), (past, config.value_size), (source, config.key_size), (source, config.value_size)]
    cache = [torch.zeros(batch, config.heads, *size) for size in sizes * config.decoder_depth]
    example = (mask, prefix, torch.zeros(batch, source, config.d_model), torch.tensor([True]), *cache)
    inputs = {
        "encoder_attention_mask": text, "input_ids": new, "encoder_hidden_states": text, "use_cache_branch": {},
        **{f"{PAST}.{name}": {0: "batch_size", 2: f"past_{name.split('.')[1]}_sequence_length"} for name in names},
    }  # fmt: skip
    outputs = {f"{PRESENT}.{name}": {0: "batch_size", 2: f"{name.split('.')[1]}_length"} for name in names}
    trace(decoder, example, folder / f"{DECODER}.onnx", inputs, {"logits": new, **outputs})


def trace(graph: nn.Module, example: tuple[Tensor, ...], file: Path, inputs: Axes, outputs: Axes) -> None:
    """Trace a graph and write it."""
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
                folder / f"{name}.onnx", folder / f"{name}{QUANTIZED}.onnx", op_types_to_quantize=["MatMul", "Gather"],
                per_channel=True, weight_type=tools.QuantType.QUInt8, nodes_to_exclude=kept,
            )  # fmt: skip
        finally:
            logging.disable(logging.NOTSET)
