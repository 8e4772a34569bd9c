"""To Hugging Face's Marian format, which `MarianMTModel.from_pretrained` and `AutoTokenizer` load."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from nmt.config.schema import ModelConfig
from nmt.export.refusal import check_choices, refuse
from nmt.storage.files import write_json
from nmt.text.special import BOS, EOS, PAD
from nmt.text.tokenizer import Tokenizer

POSITIONS = 1536
"""Longest sentence, in word pieces; Marian works its sinusoids out anew whenever it is loaded."""


def generation(beam: int, longest: int) -> dict[str, Any]:
    """Return the part of generation_config.json that says how to search, as our beam search does with alpha 0.

    Hugging Face divides a hypothesis' log-probability by length^length_penalty, which no other exponent makes equal to
    GNMT's penalty. `longest` is the number of word pieces of a translation, its end mark included.
    """
    search = {"num_beams": beam, "do_sample": False, "max_length": longest + 1}  # which counts the first BOS, too
    return search | ({"length_penalty": 0.0, "early_stopping": True} if beam > 1 else {})


def write(
    folder: Path,
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    tokenizer: Tokenizer,
    languages: tuple[str, str],
    search: Mapping[str, Any],
) -> None:
    """Write model, settings and tokenizer; `search` is how it translates unless told otherwise."""
    _check(config)
    save_file(dict(convert(config, weights)), folder / "model.safetensors", metadata={"format": "pt"})
    special = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD, "decoder_start_token_id": BOS}
    write_json(folder / "config.json", {**_settings(config, tokenizer), **special})
    write_json(
        folder / "generation_config.json",
        {**special, "forced_eos_token_id": EOS, "suppress_tokens": [PAD, BOS], **search},
    )
    _write_tokenizer(folder, tokenizer, languages)


def _check(config: ModelConfig) -> None:
    check_choices("huggingface", config, {"activation": ("relu", "gelu")})
    known = (
        ("model.norm_placement", config.norm_placement, ("post",)),
        ("model.d_k", config.key_size, (config.d_model // config.heads,)),
        ("model.d_v", config.value_size, (config.d_model // config.heads,)),
        ("model.kv_heads", config.key_value_heads, (config.heads,)),
    )
    for option, value, values in known:
        if value not in values:
            refuse("huggingface", option, value, " or ".join(map(str, values)))


def convert(config: ModelConfig, weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """The weights under Marian's names.

    Marian's sinusoids have all sines first and then all cosines; ours alternate. So the coordinates of
    what the layers hand on are reordered wherever they are written or read, which changes no product.
    """
    order = torch.cat([torch.arange(0, config.d_model, 2), torch.arange(1, config.d_model, 2)])
    vectors = {name: weights[f"vectors.{name}"][:, order] for name in ("shared", "source", "target", "projection")
               if f"vectors.{name}" in weights}  # fmt: skip
    if config.tie_embeddings:
        yield "model.shared.weight", vectors["shared"].contiguous()
    else:
        yield "model.encoder.embed_tokens.weight", vectors["source"].contiguous()
        yield "model.decoder.embed_tokens.weight", vectors["target"].contiguous()
        yield "lm_head.weight", vectors["projection"].contiguous()
    yield "final_logits_bias", torch.zeros(1, len(vectors["shared" if config.tie_embeddings else "projection"]))
    for side, layers in (("encoder", config.encoder_depth), ("decoder", config.decoder_depth)):
        for index in range(layers):
            for name, part in _layer(weights, f"{side}.{index}", order):
                yield f"model.{side}.layers.{index}.{name}", part.contiguous()


def _layer(weights: Mapping[str, Tensor], ours: str, order: Tensor) -> Iterator[tuple[str, Tensor]]:
    def reads(name: str, linear: str, parts: tuple[str, ...] = ("",)) -> Iterator[tuple[str, Tensor]]:
        """A product that reads the layers' stream; perhaps several in one."""
        both = [weights[f"{ours}.{linear}.{kind}"].chunk(len(parts)) for kind in ("weight", "bias")]
        for part, weight, bias in zip(parts, *both, strict=True):
            yield f"{name}{part}.weight", weight[:, order]
            yield f"{name}{part}.bias", bias

    def writes(name: str, linear: str) -> Iterator[tuple[str, Tensor]]:
        """What writes to the stream: a product, or a normalisation."""
        for kind in ("weight", "bias"):
            yield f"{name}.{kind}", weights[f"{ours}.{linear}.{kind}"][order]

    yield from reads("self_attn.", "attention.query_key_value", ("q_proj", "k_proj", "v_proj"))
    yield from writes("self_attn.out_proj", "attention.output")
    yield from writes("self_attn_layer_norm", "attention_residual.norm")
    if ours.startswith("decoder"):
        yield from reads("encoder_attn.q_proj", "cross_attention.query")
        yield from reads("encoder_attn.", "cross_attention.key_value", ("k_proj", "v_proj"))
        yield from writes("encoder_attn.out_proj", "cross_attention.output")
        yield from writes("encoder_attn_layer_norm", "cross_attention_residual.norm")
    yield from reads("fc1", "feed_forward.inner")
    yield from writes("fc2", "feed_forward.outer")
    yield from writes("final_layer_norm", "feed_forward_residual.norm")


def _settings(config: ModelConfig, tokenizer: Tokenizer) -> dict[str, Any]:
    both = {
        f"{side}_{name}": value
        for side, layers in (("encoder", config.encoder_depth), ("decoder", config.decoder_depth))
        for name, value in (
            ("layers", layers),
            ("attention_heads", config.heads),
            ("ffn_dim", config.d_ff),
            ("layerdrop", 0.0),
        )
    }
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "dtype": "float32",
        "vocab_size": tokenizer.source_size,
        "decoder_vocab_size": tokenizer.target_size,
        "share_encoder_decoder_embeddings": config.tie_embeddings,
        "tie_word_embeddings": config.tie_embeddings,
        "max_position_embeddings": POSITIONS,
        "d_model": config.d_model,
        "scale_embedding": True,
        "static_position_embeddings": True,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "is_encoder_decoder": True,
        "use_cache": True,
        **both,
    }


def _write_tokenizer(folder: Path, tokenizer: Tokenizer, languages: tuple[str, str]) -> None:
    source, target = tokenizer.vocabularies
    vocabularies = {"vocab.json": source} if tokenizer.joint else {"vocab.json": source, "target_vocab.json": target}
    for name, pieces in vocabularies.items():
        text = json.dumps({piece: index for index, piece in enumerate(pieces)}, ensure_ascii=False, indent=0)
        (folder / name).write_text(text, encoding="utf-8")
    for name, content in zip(("source.spm", "target.spm"), tokenizer.contents, strict=True):
        (folder / name).write_bytes(content)
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages[0],
        "target_lang": languages[1],
        "separate_vocabs": not tokenizer.joint,
        "unk_token": source[0],
        "eos_token": source[EOS],
        "pad_token": source[PAD],
        "model_max_length": POSITIONS,
    }
    write_json(folder / "tokenizer_config.json", settings)
