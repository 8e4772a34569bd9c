"""Export to CTranslate2, a fast engine for CPUs and GPUs that needs no PyTorch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nmt.config.decoding import DecodingConfig
from nmt.config.model import ModelConfig
from nmt.config.tree import Config
from nmt.export.ctranslate2_engine import CTranslate2Engine
from nmt.export.target import (
    ANY,
    SIZES_AND_TRAINING,
    EngineReader,
    Expressible,
    Target,
    TrainedModel,
    check_expressible,
    example_sentence,
    positions,
)
from nmt.model.positions import sinusoids
from nmt.packages import import_optional
from nmt.text.special import BOS, EOS, UNK
from nmt.text.tokenizer import Tokenizer


def check(settings: Config, tokenizer: Tokenizer) -> None:
    """Refuse a model that CTranslate2 cannot express."""
    check_expressible("ctranslate2", settings.model, expressible(settings.model))


def write_export(folder: Path, trained: TrainedModel) -> None:
    """Write a model for `ctranslate2.Translator`, with SentencePiece tokenizers."""
    write(folder, trained.settings.model, trained.checkpoint.weights, trained.tokenizer, trained.quantization)


def read_export(folder: Path, trained: TrainedModel) -> EngineReader:
    """Load an export into CTranslate2."""
    threads, cpu = torch.get_num_threads(), torch.device("cpu")
    longest = positions(trained.settings.model)
    return EngineReader(CTranslate2Engine(folder, trained.decoding, cpu, threads, max_positions=longest))


def usage(settings: Config, decoding: DecodingConfig) -> str:
    """Return code in Python that translates a sentence with the search of nmt."""
    joint, text = settings.tokenizer.joint, example_sentence(settings.data)
    source = "tokenizer.model" if joint else "tokenizer.source.model"
    target = "pieces" if joint else 'sentencepiece.SentencePieceProcessor("tokenizer.target.model")'
    return (
        "```python\n"
        "import ctranslate2, sentencepiece\n"
        f'model, pieces = ctranslate2.Translator("."), sentencepiece.SentencePieceProcessor("{source}")\n'
        f'source = pieces.encode("{text}", out_type=str)\n'
        f"found = model.translate_batch([source], beam_size={decoding.beam}, num_hypotheses={decoding.beam}, "
        "length_penalty=1e-9, patience=2, "
        f"max_decoding_length=len(source) + {decoding.extra_length}, return_scores=True)[0]\n"
        f"penalties = [((6 + len(each)) / 6) ** {decoding.alpha:g} for each in found.hypotheses]\n"
        "ranked = sorted(zip(found.scores, penalties, found.hypotheses), key=lambda each: -each[0] / each[1])\n"
        f"print({target}.decode(ranked[0][2]))\n"
        "```\n"
    )


TARGET = Target("ctranslate2", check, write_export, read_export, usage)


def write(
    folder: Path, config: ModelConfig, weights: Mapping[str, Tensor], tokenizer: Tokenizer, quantization: str
) -> None:
    """Write model and tokenizer, with the weights as float32 or int8."""
    check_expressible("ctranslate2", config, expressible(config))
    write_model(folder, config, weights, tokenizer, quantization)
    tokenizer.save(folder)


def write_model(
    folder: Path, config: ModelConfig, weights: Mapping[str, Tensor], tokenizer: Tokenizer, quantization: str
) -> None:
    """Write the model with its vocabularies, without the tokenizer."""
    specs = import_optional("ctranslate2.specs")
    spec = specs.TransformerSpec(*_empty_specs(specs, config))
    _fill(spec, config, {name: weight.float() for name, weight in weights.items()})
    source, target = tokenizer.vocabularies
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = source[UNK], source[BOS], source[EOS]
    spec.config.decoder_start_token = target[BOS]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = _epsilon(config)
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    spec.save(str(folder))


def expressible(config: ModelConfig) -> Expressible:
    """Return what CTranslate2 can express."""
    return {
        **SIZES_AND_TRAINING,
        "d_k": ANY,
        "d_v": (config.key_size,),
        "kv_heads": ANY,
        "norm": ("layer", "rms"),
        "norm_placement": ("post", "pre"),
        "activation": ("relu", "gelu", "swish", "swiglu"),
        "positions": ("sinusoidal", "learned", "rotary"),
    }


def _epsilon(config: ModelConfig) -> float:
    """Return the constant that PyTorch's normalisation adds to the variance."""
    return nn.LayerNorm(1).eps if config.norm == "layer" else torch.finfo(torch.float32).eps


def _empty_specs(specs: Any, config: ModelConfig) -> tuple[Any, Any]:
    """Return the specifications of encoder and decoder, without weights."""
    activations = specs.Activation
    shape = {
        "num_heads": config.heads,
        "num_heads_kv": config.kv_heads or None,
        "head_dim": config.key_size,
        "pre_norm": config.norm_placement == "pre",
        "rms_norm": config.norm == "rms",
        "activation": {
            "relu": activations.RELU,
            "gelu": activations.GELU,
            "swish": activations.SWISH,
            "swiglu": activations.SWISH,
        }[config.activation],
        "ffn_glu": config.activation == "swiglu",
        "rotary_dim": 0 if config.positions == "rotary" else None,  # 0 means the whole head
        "rotary_interleave": True,
    }
    encoder = specs.transformer_spec.TransformerEncoderSpec(config.encoder_depth, **shape)
    if config.positions == "rotary":
        del encoder.position_encodings
    return encoder, specs.transformer_spec.TransformerDecoderSpec(config.decoder_depth, **shape)


def _fill(spec: Any, config: ModelConfig, weights: Mapping[str, Tensor]) -> None:
    shared = weights.get("vectors.shared")
    for language, stack in (("source", spec.encoder), ("target", spec.decoder)):
        embeddings = stack.embeddings[0] if language == "source" else stack.embeddings
        embeddings.weight = _array(weights[f"vectors.{language}"] if shared is None else shared)
        if config.positions == "learned":
            stack.position_encodings.encodings = _array(weights[f"{language}_positions"])
        elif config.positions == "sinusoidal":
            stack.position_encodings.encodings = _array(sinusoids(positions(config), config.d_model).float())
    spec.decoder.projection.weight = _array(weights["vectors.projection"] if shared is None else shared)
    if config.output_bias:
        spec.decoder.projection.bias = _array(weights["vectors.bias"])
    for name, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        for index, layer in enumerate(stack.layer):
            _fill_layer(layer, config, weights, f"{name}.{index}")
        if config.norm_placement == "pre":
            _fill_norm(stack.layer_norm, weights, f"{name}_norm")


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


def _array(tensor: Any) -> Any:
    return tensor.contiguous().numpy().copy()  # a copy, because int8 quantization scales it in place
