"""Export to Hugging Face: a folder that `MarianMTModel` and `AutoTokenizer` load.

Marian is the only architecture there that is the same as the paper's: post-norm, sinusoidal positions, biases in every
projection, and word vectors scaled by the square root of d_model.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from nmt.config.model import ModelConfig
from nmt.export.target import Target, TrainedModel
from nmt.packages import import_optional
from nmt.storage.files import write_json
from nmt.text.special import BOS, EOS, PAD

SPECIAL = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD, "decoder_start_token_id": BOS}
BATCH = 32
"""Sentences that are translated together to verify an export."""
SPECIAL_TEXT = "Text that looks like a special token, such as `</s>`, is taken for it"
"""What the tokenizers of Hugging Face do otherwise than ours."""
NOTE = (
    "the export searches as generation_config.json says, without a length penalty, and was compared with the model "
    "that way: Hugging Face has no GNMT length penalty, and its `length_penalty` is another formula. Unknown words are "
    f"left out. {SPECIAL_TEXT}, and so is `>>de<<` at the beginning of a sentence"
)


class HuggingFace:
    """Hugging Face's model and tokenizer."""

    def __init__(self, folder: Path, trained: TrainedModel) -> None:
        transformers = import_optional("transformers")
        transformers.logging.disable_progress_bar()
        transformers.logging.set_verbosity_error()
        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
        self.model: Any = transformers.MarianMTModel.from_pretrained(folder).eval()

    @torch.inference_mode()
    def translate(self, lines: Sequence[str]) -> list[str]:
        """See `Program.translate`."""
        found: list[str] = []
        for begin in range(0, len(lines), BATCH):
            batch = self.tokenizer(lines[begin : begin + BATCH], return_tensors="pt", padding=True)
            found += self.tokenizer.batch_decode(self.model.generate(**batch), skip_special_tokens=True)
        return found

    @torch.inference_mode()
    def score(self, lines: Sequence[str], translations: Sequence[str]) -> list[float]:
        """See `Program.score`."""
        found: list[float] = []
        for line, translation in zip(lines, translations, strict=True):
            batch = self.tokenizer([line], text_target=[translation], return_tensors="pt")
            logits = self.model(**batch).logits
            found.append(-float(F.cross_entropy(logits[0], batch["labels"][0], reduction="sum")))
        return found


def usage(trained: TrainedModel) -> str:
    """Return code in Python that translates a sentence."""
    return (
        "```python\n"
        "from transformers import AutoTokenizer, MarianMTModel\n"
        'model, tokenizer = MarianMTModel.from_pretrained("."), AutoTokenizer.from_pretrained(".")\n'
        f'print(tokenizer.batch_decode(model.generate(**tokenizer("{trained.example}", return_tensors="pt")), '
        "skip_special_tokens=True))\n"
        "```\n"
    )


def write(folder: Path, trained: TrainedModel) -> None:
    """Write a Marian model and its tokenizer."""
    model, tokenizer = trained.settings.model, trained.tokenizer
    save_file(dict(convert(model, trained.weights)), folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", model_settings(trained))
    generation = generation_settings(trained.decoding.beam, trained.longest)
    write_json(folder / "generation_config.json", generation | {"suppress_tokens": [PAD, BOS]})
    source, target = tokenizer.vocabularies
    vocabularies = {"vocab.json": source} if tokenizer.joint else {"vocab.json": source, "target_vocab.json": target}
    for name, pieces in vocabularies.items():
        text = json.dumps({piece: index for index, piece in enumerate(pieces)}, ensure_ascii=False, indent=0)
        (folder / name).write_text(text, encoding="utf-8")
    for name, content in zip(("source.spm", "target.spm"), tokenizer.contents, strict=True):
        (folder / name).write_bytes(content)
    tokenizer_settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": trained.settings.data.source_lang,
        "target_lang": trained.settings.data.target_lang,
        "separate_vocabs": not tokenizer.joint,
        "unk_token": source[0],
        "eos_token": source[EOS],
        "pad_token": source[PAD],
        "model_max_length": trained.positions,
    }
    write_json(folder / "tokenizer_config.json", tokenizer_settings)


def model_settings(trained: TrainedModel) -> dict[str, object]:
    """Return the content of config.json, which describes a Marian model."""
    config, tokenizer = trained.settings.model, trained.tokenizer
    depths = {"encoder": config.encoder_depth, "decoder": config.decoder_depth}
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "dtype": "float32",
        "vocab_size": tokenizer.source_size,
        "decoder_vocab_size": tokenizer.target_size,
        "share_encoder_decoder_embeddings": config.tie_embeddings,
        "tie_word_embeddings": config.tie_embeddings,
        "max_position_embeddings": trained.positions,
        "d_model": config.d_model,
        "scale_embedding": True,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "is_encoder_decoder": True,
        **SPECIAL,
        **{f"{stack}_layers": depth for stack, depth in depths.items()},
        **{f"{stack}_attention_heads": config.heads for stack in depths},
        **{f"{stack}_ffn_dim": config.d_ff for stack in depths},
    }


def generation_settings(beam: int, longest: int) -> dict[str, object]:
    """Return the content of generation_config.json that makes Hugging Face search like our beam search with alpha 0.

    Hugging Face divides the log-probability of a hypothesis by length^length_penalty. No exponent other than 0 makes
    that equal to GNMT's penalty. `longest` is the largest number of word pieces of a translation, end mark included.
    """
    search = {"num_beams": beam, "do_sample": False, "max_length": longest + 1}  # max_length also counts the first BOS
    several = {"length_penalty": 0.0, "early_stopping": False} if beam > 1 else {}
    return {**SPECIAL, "forced_eos_token_id": EOS, **search, **several}


class LayerWeights(NamedTuple):
    """A linear layer or a normalisation, which has a weight and a bias."""

    ours: str
    theirs: tuple[str, ...]
    """Marian's names: several if it splits our layer by rows."""
    reads: bool
    """Whether it reads the residual stream; if not, it writes to it."""


ENCODER_LAYER = (
    LayerWeights("attention.query_key_value", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), True),
    LayerWeights("attention.output", ("self_attn.out_proj",), False),
    LayerWeights("attention_residual.norm", ("self_attn_layer_norm",), False),
    LayerWeights("feed_forward.inner", ("fc1",), True),
    LayerWeights("feed_forward.outer", ("fc2",), False),
    LayerWeights("feed_forward_residual.norm", ("final_layer_norm",), False),
)
DECODER_LAYER = (
    *ENCODER_LAYER,
    LayerWeights("cross_attention.query", ("encoder_attn.q_proj",), True),
    LayerWeights("cross_attention.key_value", ("encoder_attn.k_proj", "encoder_attn.v_proj"), True),
    LayerWeights("cross_attention.output", ("encoder_attn.out_proj",), False),
    LayerWeights("cross_attention_residual.norm", ("encoder_attn_layer_norm",), False),
)


def layer_weights(config: ModelConfig) -> Iterator[LayerWeights]:
    """Yield our names and Marian's of everything in the layers."""
    stacks = ("encoder", config.encoder_depth, ENCODER_LAYER), ("decoder", config.decoder_depth, DECODER_LAYER)
    for stack, layers, parts in stacks:
        for index in range(layers):
            for each in parts:
                theirs = tuple(f"model.{stack}.layers.{index}.{name}" for name in each.theirs)
                yield LayerWeights(f"{stack}.{index}.{each.ours}", theirs, each.reads)


def residual_order(width: int) -> Tensor:
    """Return our coordinate of the residual stream for each of Marian's.

    Marian's sinusoids have all sines first and then all cosines; ours alternate. Therefore the coordinates are
    reordered wherever a layer reads or writes the residual stream. No product changes.
    """
    return torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])


def reordered(whole: Tensor, order: Tensor, *, reads: bool) -> Tensor:
    """Return a weight or bias of a layer that reads the residual stream, or writes to it, for another order of it."""
    if not reads:
        return whole[order]
    return whole[:, order] if whole.dim() == 2 else whole


def convert(config: ModelConfig, weights: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights under Marian's names."""
    order = residual_order(config.d_model)
    tables = {"shared": "model.shared", "source": "model.encoder.embed_tokens", "target": "model.decoder.embed_tokens",
              "projection": "lm_head"}  # fmt: skip
    for ours, theirs in tables.items():
        if f"vectors.{ours}" in weights:
            yield f"{theirs}.weight", weights[f"vectors.{ours}"][:, order].contiguous()
    words = len(weights["vectors.shared" if config.tie_embeddings else "vectors.projection"])
    yield "final_logits_bias", weights["vectors.bias"][None] if config.output_bias else torch.zeros(1, words)
    for each in layer_weights(config):
        for kind in ("weight", "bias"):
            whole = reordered(weights[f"{each.ours}.{kind}"], order, reads=each.reads)
            for name, part in zip(each.theirs, whole.chunk(len(each.theirs)), strict=True):
                yield f"{name}.{kind}", part.contiguous()


TARGET = Target(
    library="transformers",
    expresses={"activation": ("relu", "gelu", "swish")},
    search="beam",
    write=write,
    read=HuggingFace,
    usage=usage,
    note=NOTE,
)
