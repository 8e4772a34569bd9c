"""Export to CTranslate2, a fast engine for CPUs and GPUs that needs no PyTorch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nmt.config.model import ModelConfig
from nmt.export.ctranslate2_engine import CTranslate2Engine
from nmt.export.target import ALL_LAYERS, ANY, Target, TrainedModel
from nmt.model.positions import sinusoids
from nmt.packages import import_optional
from nmt.text.special import BOS, EOS, UNK


class CTranslate2:
    """CTranslate2 with the search of nmt."""

    def __init__(self, folder: Path, trained: TrainedModel) -> None:
        cpu = torch.device("cpu")
        self.engine = CTranslate2Engine(folder, trained.decoding, cpu, max_positions=trained.positions)

    def translate(self, lines: Sequence[str]) -> list[str]:
        """See `Program.translate`."""
        return [each.text for each in self.engine.translate(lines)]

    def score(self, lines: Sequence[str], translations: Sequence[str]) -> list[float]:
        """See `Program.score`."""
        return [each.log_probability for each in self.engine.score(lines, translations)]


def usage(trained: TrainedModel) -> str:
    """Return code in Python that translates a sentence with the search of nmt."""
    joint, search = len(trained.tokenizer.files) == 1, trained.decoding
    source = "tokenizer.model" if joint else "tokenizer.source.model"
    target = "pieces" if joint else 'sentencepiece.SentencePieceProcessor("tokenizer.target.model")'
    return (
        "```python\n"
        "import ctranslate2, sentencepiece\n"
        f'model, pieces = ctranslate2.Translator("."), sentencepiece.SentencePieceProcessor("{source}")\n'
        f'source = pieces.encode("{trained.example}", out_type=str)\n'
        f"found = model.translate_batch([source], beam_size={search.beam}, num_hypotheses={search.beam}, "
        "length_penalty=1e-9, patience=2, "
        f"max_decoding_length=len(source) + {search.extra_length}, return_scores=True)[0]\n"
        f"penalties = [((6 + len(each)) / 6) ** {search.alpha:g} for each in found.hypotheses]\n"
        "ranked = sorted(zip(found.scores, penalties, found.hypotheses), key=lambda each: -each[0] / each[1])\n"
        f"print({target}.decode(ranked[0][2]))\n"
        "```\n"
    )


def write(folder: Path, trained: TrainedModel) -> None:
    """Write a model for `ctranslate2.Translator`, with SentencePiece tokenizers."""
    specs, config = import_optional("ctranslate2.specs"), trained.settings.model
    spec = specs.TransformerSpec(*_empty_specs(specs, config))
    _fill(spec, trained, {name: weight.float() for name, weight in trained.weights.items()})
    source, target = trained.tokenizer.vocabularies
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = source[UNK], source[BOS], source[EOS]
    spec.config.decoder_start_token = target[BOS]
    spec.config.add_source_eos = True
    # what PyTorch's normalisation adds to the variance
    spec.config.layer_norm_epsilon = nn.LayerNorm(1).eps if config.norm == "layer" else torch.finfo(torch.float32).eps
    spec.validate()
    spec.optimize(quantization=None if trained.quantization == "float32" else trained.quantization)
    spec.save(str(folder))
    trained.tokenizer.save(folder)


def _empty_specs(specs: Any, config: ModelConfig) -> tuple[Any, Any]:
    """Return the specifications of encoder and decoder, without weights."""
    gated = config.activation == "swiglu"
    shape = {
        "num_heads": config.heads,
        "num_heads_kv": config.kv_heads or None,
        "head_dim": config.key_size,
        "pre_norm": config.norm_placement == "pre",
        "rms_norm": config.norm == "rms",
        "activation": specs.Activation["SWISH" if gated else config.activation.upper()],
        "ffn_glu": gated,
        "rotary_dim": 0 if config.positions == "rotary" else None,  # 0 means the whole head
        "rotary_interleave": True,
    }
    encoder = specs.transformer_spec.TransformerEncoderSpec(config.encoder_depth, **shape)
    if config.positions == "rotary":
        del encoder.position_encodings
    return encoder, specs.transformer_spec.TransformerDecoderSpec(config.decoder_depth, **shape)


def _fill(spec: Any, trained: TrainedModel, weights: Mapping[str, Tensor]) -> None:
    """Give the specification the weights of the model."""
    config, shared = trained.settings.model, weights.get("vectors.shared")
    for language, name, stack in (("source", "encoder", spec.encoder), ("target", "decoder", spec.decoder)):
        embeddings = stack.embeddings[0] if language == "source" else stack.embeddings
        embeddings.weight = _array(weights[f"vectors.{language}"] if shared is None else shared)
        if config.positions == "learned":
            stack.position_encodings.encodings = _array(weights[f"{language}_positions"])
        elif config.positions == "sinusoidal":
            stack.position_encodings.encodings = _array(sinusoids(trained.positions, config.d_model).float())
        for index, layer in enumerate(stack.layer):
            _fill_layer(layer, weights, f"{name}.{index}", gated=config.activation == "swiglu")
        if config.norm_placement == "pre":
            _fill_part(stack.layer_norm, weights, f"{name}_norm")
    spec.decoder.projection.weight = _array(weights["vectors.projection"] if shared is None else shared)
    if config.output_bias:
        spec.decoder.projection.bias = _array(weights["vectors.bias"])


def _fill_layer(layer: Any, weights: Mapping[str, Tensor], name: str, *, gated: bool) -> None:
    attentions = [(layer.self_attention, "attention", ["query_key_value", "output"])]
    if hasattr(layer, "attention"):
        attentions.append((layer.attention, "cross_attention", ["query", "key_value", "output"]))
    for spec, attention, linears in attentions:
        for part, ours in zip(spec.linear, linears, strict=True):
            _fill_part(part, weights, f"{name}.{attention}.{ours}")
        _fill_part(spec.layer_norm, weights, f"{name}.{attention}_residual.norm")
    inner = [layer.ffn.linear_0, layer.ffn.linear_0_noact] if gated else [layer.ffn.linear_0]
    for index, part in enumerate(inner):
        _fill_part(part, weights, f"{name}.feed_forward.inner", index, len(inner))
    _fill_part(layer.ffn.linear_1, weights, f"{name}.feed_forward.outer")
    _fill_part(layer.ffn.layer_norm, weights, f"{name}.feed_forward_residual.norm")


def _fill_part(part: Any, weights: Mapping[str, Tensor], name: str, chunk: int = 0, chunks: int = 1) -> None:
    """Give a linear layer or a normalisation one of the chunks of the rows of our weight, and of the bias if any."""
    names = ("gamma", "beta") if hasattr(part, "gamma") else ("weight", "bias")
    for ours, theirs in zip(("weight", "bias"), names, strict=True):
        if f"{name}.{ours}" in weights:
            setattr(part, theirs, _array(weights[f"{name}.{ours}"].chunk(chunks)[chunk]))


def _array(tensor: Tensor) -> Any:
    return tensor.contiguous().numpy().copy()  # a copy, because int8 quantization scales it in place


TARGET = Target(
    library="ctranslate2",
    expresses={**ALL_LAYERS, "d_k": ANY, "positions": ("sinusoidal", "learned", "rotary")},
    write=write,
    read=CTranslate2,
    usage=usage,
)
