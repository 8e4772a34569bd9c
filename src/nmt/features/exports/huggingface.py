"""Export to Hugging Face's Marian format, which `MarianMTModel.from_pretrained` and `AutoTokenizer` load."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import save_file
from torch import Tensor

from nmt.config.schema import Config, DecodingConfig, ModelConfig
from nmt.decoding.engine import Engine
from nmt.decoding.torch_engine import TorchEngine
from nmt.features.exports.exporter import (
    SIZES_AND_TRAINING,
    Expressible,
    TrainedModel,
    check_expressible,
    example_sentence,
)
from nmt.features.exports.marian_engine import POSITIONS, MarianEngine, check_tokenizer
from nmt.storage.files import write_json
from nmt.text.special import BOS, EOS, PAD
from nmt.text.tokenizer import Tokenizer

CPU = torch.device("cpu")
Json = Mapping[str, object]
SPECIAL_TEXT = "Text that looks like a special token, such as `</s>`, is taken for it"
"""What the tokenizers of Hugging Face do otherwise than ours."""


class HuggingFaceExporter:
    """Writes a Marian model and its tokenizer."""

    library = "transformers"

    def check(self, config: ModelConfig) -> None:
        """See `Exporter.check`."""
        check_expressible("huggingface", config, _expressible(config))

    def positions(self, config: ModelConfig) -> int:
        """See `Exporter.positions`."""
        return POSITIONS

    def write(self, folder: Path, trained: TrainedModel) -> None:
        """See `Exporter.write`."""
        settings = trained.settings
        search = generation(trained.decoding.beam, longest(trained, POSITIONS))
        languages = settings.data.source_lang, settings.data.target_lang
        write(folder, settings.model, trained.checkpoint.weights, trained.tokenizer, languages, search)

    def native_engine(self, engine: TorchEngine, trained: TrainedModel) -> TorchEngine:
        """See `Exporter.native_engine`; Hugging Face has no GNMT length penalty, and one limit for all sentences."""
        return searching(engine, beam=trained.decoding.beam, limit=longest(trained, POSITIONS))

    def open(self, folder: Path, native: TorchEngine, lines: Sequence[str]) -> Engine:
        """See `Exporter.open`."""
        check_tokenizer(folder, native.tokenizer, lines)
        return MarianEngine(folder, native.tokenizer, native.config)

    def client(self, folder: Path) -> None:
        """See `Exporter.client`; its program searches as the export was compared."""

    def usage(self, settings: Config, decoding: DecodingConfig) -> str:
        """See `Exporter.usage`."""
        text = example_sentence(settings.data)
        return (
            "```python\n"
            "from transformers import AutoTokenizer, MarianMTModel\n"
            'model, tokenizer = MarianMTModel.from_pretrained("."), AutoTokenizer.from_pretrained(".")\n'
            f'print(tokenizer.batch_decode(model.generate(**tokenizer("{text}", return_tensors="pt")), '
            "skip_special_tokens=True))\n"
            "```\n"
        )

    def search_note(self, decoding: DecodingConfig) -> str:
        """See `Exporter.search_note`."""
        return (
            "the export searches as generation_config.json says, and was compared with the model that way: "
            f"beam {decoding.beam}, without a length penalty. nmt's own scores come from a search with GNMT's length "
            f"penalty {decoding.alpha:g}, which Hugging Face does not have: its `length_penalty` is another formula. "
            f"{SPECIAL_TEXT}, and so is `>>de<<` at the beginning of a sentence"
        )


def generation(beam: int, longest: int) -> Json:
    """Return the fields of generation_config.json that make Hugging Face search like our beam search with alpha 0.

    Hugging Face divides the log-probability of a hypothesis by length^length_penalty. No exponent other than 0 makes
    that equal to GNMT's penalty. `longest` is the largest number of word pieces of a translation, end mark included.
    """
    search = {"num_beams": beam, "do_sample": False, "max_length": longest + 1}  # max_length also counts the first BOS
    return search | ({"length_penalty": 0.0, "early_stopping": False} if beam > 1 else {})


def longest(trained: TrainedModel, positions: int) -> int:
    """Return the largest number of word pieces of a translation, given the number of positions."""
    return min(trained.settings.data.max_pieces + 1 + trained.decoding.extra_length, positions - 1)


def searching(engine: TorchEngine, *, beam: int, limit: int) -> TorchEngine:
    """Return an engine that searches as Hugging Face does: without a length penalty, and with one limit for all."""
    search = replace(engine.config, beam=beam, alpha=0.0, extra_length=limit)
    native = TorchEngine(engine.models, engine.tokenizer, search, engine.device)
    native.max_target_tokens = min(native.max_target_tokens, limit)
    return native


def write(
    folder: Path,
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    tokenizer: Tokenizer,
    languages: tuple[str, str],
    search: Json,
) -> None:
    """Write model, settings and tokenizer; `search` is how the export translates by default."""
    check_expressible("huggingface", config, _expressible(config))
    save_file(dict(convert(config, weights)), folder / "model.safetensors", metadata={"format": "pt"})
    special = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD, "decoder_start_token_id": BOS}
    write_json(folder / "config.json", {**settings_json(config, tokenizer), **special})
    write_json(
        folder / "generation_config.json",
        {**special, "forced_eos_token_id": EOS, "suppress_tokens": [PAD, BOS], **search},
    )
    _write_tokenizer(folder, tokenizer, languages)


def _expressible(config: ModelConfig) -> Expressible:
    head = (config.d_model // config.heads,)
    return {
        **SIZES_AND_TRAINING,
        "d_k": head,
        "d_v": head,
        "kv_heads": (config.heads,),
        "norm": ("layer",),
        "norm_placement": ("post",),
        "activation": ("relu", "gelu", "swish"),
        "positions": ("sinusoidal",),
    }


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
            whole = weights[f"{each.ours}.{kind}"]
            if not each.reads:
                whole = whole[order]
            elif kind == "weight":
                whole = whole[:, order]
            for name, part in zip(each.theirs, whole.chunk(len(each.theirs)), strict=True):
                yield f"{name}.{kind}", part.contiguous()


def settings_json(config: ModelConfig, tokenizer: Tokenizer) -> Json:
    """Return the fields of config.json that describe a Marian model."""
    stacks = {
        f"{stack}_{name}": value
        for stack, layers in (("encoder", config.encoder_depth), ("decoder", config.decoder_depth))
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
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "is_encoder_decoder": True,
        "use_cache": True,
        **stacks,
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
