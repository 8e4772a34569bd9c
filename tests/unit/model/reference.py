"""The paper's Transformer once more, one sentence pair at a time, in plain masked products.

It shares no code with `nmt.model`: an independent truth for its tests.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from nmt.config.model import ModelConfig

Weights = dict[str, Tensor]


def linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def norm(weights: Weights, name: str, x: Tensor, config: ModelConfig) -> Tensor:
    if config.norm == "rms":
        epsilon = torch.finfo(x.dtype).eps
        return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt() * weights[f"{name}.weight"]
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def turned(heads: Tensor) -> Tensor:
    """Rotary positions, with complex numbers: (length, h, d)."""
    length, _, width = heads.shape
    complex_heads = torch.view_as_complex(heads.reshape(length, heads.shape[1], width // 2, 2))
    frequencies = torch.tensor([10_000 ** (-2 * i / width) for i in range(width // 2)], dtype=torch.float64)
    angles = torch.arange(length)[:, None] * frequencies
    return torch.view_as_real(complex_heads * torch.polar(torch.ones_like(angles), angles)[:, None]).flatten(-2)


def distance_penalty(head: int, heads: int, length: int) -> Tensor:
    """ALiBi: the head's slope times the distance."""
    slope = 2 ** (-8 * (head + 1) / heads)
    return torch.tensor([[-slope * abs(i - j) for j in range(length)] for i in range(length)], dtype=torch.float64)


def relative_scores(vectors: Tensor, reach: int, queries: Tensor) -> Tensor:
    """Shaw et al.: each query times the vector of its clipped distance to each key, scaled."""
    rows = []
    for i, query in enumerate(queries):
        distances = [max(-reach, min(reach, j - i)) for j in range(len(queries))]
        rows.append(torch.stack([query @ vectors[distance + reach] for distance in distances]))
    return torch.stack(rows) / math.sqrt(queries.shape[-1])


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    config: ModelConfig,
    causal: bool,
    rotary: bool,
    bias: Callable[[int, Tensor], Tensor] | None = None,
) -> Tensor:
    heads, kv_heads = config.heads, config.key_value_heads
    q, k, v = q.unflatten(1, (heads, -1)), k.unflatten(1, (kv_heads, -1)), v.unflatten(1, (kv_heads, -1))
    if rotary:
        q, k = turned(q), turned(k)
    outputs = []
    for head in range(heads):
        shared = head // (heads // kv_heads)
        scores = q[:, head] @ k[:, shared].T / math.sqrt(q.shape[-1])
        if bias is not None:
            scores = scores + bias(head, q[:, head])
        if causal:
            scores = scores + torch.full_like(scores, -torch.inf).triu(1)
        outputs.append(scores.softmax(-1) @ v[:, shared])
    return torch.cat(outputs, -1)


def self_attention(weights: Weights, name: str, config: ModelConfig, causal: bool, x: Tensor) -> Tensor:
    widths = [config.heads * config.key_size]
    widths += [config.key_value_heads * config.key_size, config.key_value_heads * config.value_size]
    q, k, v = linear(weights, f"{name}.query_key_value", x).split(widths, dim=-1)
    bias: Callable[[int, Tensor], Tensor] | None = None
    if config.positions == "alibi":
        bias = lambda head, queries: distance_penalty(head, config.heads, len(queries))  # noqa: E731
    if config.positions == "relative":
        vectors = weights[f"{name}.score_bias.vectors"]
        bias = lambda _, queries: relative_scores(vectors, len(vectors) // 2, queries)  # noqa: E731
    attended = attention(q, k, v, config, causal, config.positions == "rotary", bias)
    return linear(weights, f"{name}.output", attended)


def cross_attention(weights: Weights, name: str, config: ModelConfig, memory: Tensor, x: Tensor) -> Tensor:
    q = linear(weights, f"{name}.query", x)
    k, v = linear(weights, f"{name}.key_value", memory).split(
        [config.key_value_heads * config.key_size, config.key_value_heads * config.value_size], dim=-1
    )
    return linear(weights, f"{name}.output", attention(q, k, v, config, False, False))


def feed_forward(weights: Weights, name: str, config: ModelConfig, x: Tensor) -> Tensor:
    inner = linear(weights, f"{name}.inner", x)
    if config.activation == "swiglu":
        gate, value = inner.chunk(2, -1)
        hidden = gate * gate.sigmoid() * value
    elif config.activation == "gelu":
        hidden = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
    else:
        hidden = inner.clamp(min=0)
    return linear(weights, f"{name}.outer", hidden)


def around(weights: Weights, name: str, x: Tensor, config: ModelConfig, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    if config.norm_placement == "pre":
        return x + sublayer(norm(weights, f"{name}.norm", x, config))
    return norm(weights, f"{name}.norm", x + sublayer(x), config)


def embed(weights: Weights, side: str, tokens: Tensor, config: ModelConfig, first: int = 0) -> Tensor:
    """Vectors of tokens whose positions count from `first`."""
    matrix = weights["vectors.shared" if config.tie_embeddings else f"vectors.{side}"]
    x = matrix[tokens] * math.sqrt(config.d_model)
    if config.positions == "learned":
        return x + weights[f"{side}_positions"][: len(tokens)]
    if config.positions == "sinusoidal":
        table = torch.zeros(len(tokens), config.d_model, dtype=x.dtype)
        for position in range(len(tokens)):
            for i in range(config.d_model // 2):
                angle = (first + position) / 10_000 ** (2 * i / config.d_model)
                table[position, 2 * i], table[position, 2 * i + 1] = math.sin(angle), math.cos(angle)
        return x + table
    return x


def encode(weights: Weights, config: ModelConfig, x: Tensor) -> Tensor:
    for i in range(config.encoder_layers or config.layers):
        attention_name, feed_forward_name = f"encoder.{i}.attention", f"encoder.{i}.feed_forward"
        attend = partial(self_attention, weights, attention_name, config, False)
        x = around(weights, f"{attention_name}_residual", x, config, attend)
        feed = partial(feed_forward, weights, feed_forward_name, config)
        x = around(weights, f"{feed_forward_name}_residual", x, config, feed)
    return norm(weights, "encoder_norm", x, config) if config.norm_placement == "pre" else x


def logits(weights: Weights, config: ModelConfig, source: Tensor, target: Tensor) -> Tensor:
    """Scores (length of target, vocabulary) for one sentence pair."""
    decoder_only = config.architecture == "decoder_only"
    memory = embed(weights, "source", source, config)
    if decoder_only:
        x = torch.cat((memory, embed(weights, "target", target, config, first=len(source))))
    else:
        memory = encode(weights, config, memory)
        x = embed(weights, "target", target, config)
    for i in range(config.decoder_layers or config.layers):
        attention_name, cross_name = f"decoder.{i}.attention", f"decoder.{i}.cross_attention"
        attend = partial(self_attention, weights, attention_name, config, True)
        x = around(weights, f"{attention_name}_residual", x, config, attend)
        if not decoder_only:
            look = partial(cross_attention, weights, cross_name, config, memory)
            x = around(weights, f"{cross_name}_residual", x, config, look)
        feed = partial(feed_forward, weights, f"decoder.{i}.feed_forward", config)
        x = around(weights, f"decoder.{i}.feed_forward_residual", x, config, feed)
    if config.norm_placement == "pre":
        x = norm(weights, "decoder_norm", x, config)
    return x[-len(target) :] @ weights["vectors.shared" if config.tie_embeddings else "vectors.projection"].T
