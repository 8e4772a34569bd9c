"""To CTranslate2's format: a fast engine for CPUs and GPUs that needs no PyTorch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nmt.config.schema import ModelConfig
from nmt.export.refusal import check_choices, extra, refuse
from nmt.model.positions.sinusoidal import sinusoids
from nmt.text.special import BOS, EOS, UNK
from nmt.text.tokenizer import Tokenizer

POSITIONS = 2048
"""Longest sentence, in word pieces, that sinusoids are written down for."""

KNOWN = {
    "positions": ("sinusoidal", "learned", "rotary"),
    "norm": ("layer", "rms"),
    "activation": ("relu", "gelu", "swiglu"),
}
"""The choices of the model that the format can express; of settings not named here, the defaults."""


def write(folder: Path, config: ModelConfig, weights: Mapping[str, Tensor], tokenizer: Tokenizer, numbers: str) -> None:
    """Write model and tokenizer; `numbers` is what the weights are stored as, float32 or int8."""
    _check(config)
    specs = extra("ctranslate2.specs")
    spec = specs.TransformerSpec(*_parts(specs, config))
    _fill(spec, config, {name: weight.float() for name, weight in weights.items()})
    source, target = tokenizer.vocabularies
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = source[UNK], source[BOS], source[EOS]
    spec.config.decoder_start_token = target[BOS]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = _epsilon(config)
    spec.validate()
    spec.optimize(quantization=None if numbers == "float32" else numbers)
    spec.save(str(folder))
    tokenizer.save(folder)


def positions(config: ModelConfig) -> int:
    """Longest sentence, in word pieces, that an export can translate."""
    return config.max_positions if config.positions == "learned" else POSITIONS


def _check(config: ModelConfig) -> None:
    check_choices("ctranslate2", config, KNOWN)
    if config.key_size != config.value_size:
        refuse("ctranslate2", "model.d_v", config.value_size, "values as wide as keys")


def _epsilon(config: ModelConfig) -> float:
    """What PyTorch's normalisations add to the variance."""
    return nn.LayerNorm(1).eps if config.norm == "layer" else torch.finfo(torch.float32).eps


def _parts(specs: Any, config: ModelConfig) -> tuple[Any, Any]:
    """Encoder and decoder, as yet without weights."""
    activations = specs.Activation
    shape = {
        "num_heads": config.heads,
        "num_heads_kv": config.kv_heads or None,
        "head_dim": config.key_size,
        "pre_norm": config.norm_placement == "pre",
        "rms_norm": config.norm == "rms",
        "activation": {"relu": activations.RELU, "gelu": activations.GELU, "swiglu": activations.SWISH}[
            config.activation
        ],
        "ffn_glu": config.activation == "swiglu",
        "rotary_dim": 0 if config.positions == "rotary" else None,  # 0 is the whole head
        "rotary_interleave": True,
    }
    encoder = specs.transformer_spec.TransformerEncoderSpec(config.encoder_depth, **shape)
    if config.positions == "rotary":
        del encoder.position_encodings
    return encoder, specs.transformer_spec.TransformerDecoderSpec(config.decoder_depth, **shape)


def _fill(spec: Any, config: ModelConfig, weights: Mapping[str, Tensor]) -> None:
    shared = weights.get("vectors.shared")
    for side, part in (("source", spec.encoder), ("target", spec.decoder)):
        embeddings = part.embeddings[0] if side == "source" else part.embeddings
        embeddings.weight = _array(weights[f"vectors.{side}"] if shared is None else shared)
        if config.positions != "rotary":
            learned = config.positions == "learned"
            table = weights[f"{side}_positions"] if learned else sinusoids(POSITIONS, config.d_model).float()
            part.position_encodings.encodings = _array(table)
    spec.decoder.projection.weight = _array(weights["vectors.projection"] if shared is None else shared)
    for name, part in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        for index, layer in enumerate(part.layer):
            _fill_layer(layer, config, weights, f"{name}.{index}")
        if config.norm_placement == "pre":
            _fill_norm(part.layer_norm, weights, f"{name}_norm")


def _fill_layer(layer: Any, config: ModelConfig, weights: Mapping[str, Tensor], name: str) -> None:
    attentions: list[tuple[Any, str, tuple[str, ...]]] = [
        (layer.self_attention, "attention", ("query_key_value", "output"))
    ]
    if hasattr(layer, "attention"):
        attentions.append((layer.attention, "cross_attention", ("query", "key_value", "output")))
    for spec, attention, linears in attentions:
        for linear, linear_name in zip(spec.linear, linears, strict=True):
            _fill_linear(linear, weights, f"{name}.{attention}.{linear_name}")
        _fill_norm(spec.layer_norm, weights, f"{name}.{attention}_residual.norm")
    _fill_norm(layer.ffn.layer_norm, weights, f"{name}.feed_forward_residual.norm")
    _fill_linear(layer.ffn.linear_1, weights, f"{name}.feed_forward.outer")
    inner = f"{name}.feed_forward.inner"
    if config.activation != "swiglu":
        _fill_linear(layer.ffn.linear_0, weights, inner)
        return
    halves = [weights[f"{inner}.{kind}"].chunk(2) for kind in ("weight", "bias")]
    for linear, weight, bias in zip((layer.ffn.linear_0, layer.ffn.linear_0_noact), *halves, strict=True):
        linear.weight, linear.bias = _array(weight), _array(bias)


def _fill_linear(linear: Any, weights: Mapping[str, Tensor], name: str) -> None:
    linear.weight, linear.bias = _array(weights[f"{name}.weight"]), _array(weights[f"{name}.bias"])


def _fill_norm(norm: Any, weights: Mapping[str, Tensor], name: str) -> None:
    norm.gamma = _array(weights[f"{name}.weight"])
    if f"{name}.bias" in weights:
        norm.beta = _array(weights[f"{name}.bias"])


def _array(tensor: Tensor) -> Any:
    return tensor.contiguous().numpy().copy()  # which it scales in place for int8
