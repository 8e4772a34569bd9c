"""Read a Marian model of Hugging Face, such as those of the opus-mt family."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from nmt.config.model import ModelConfig
from nmt.config.tree import Config
from nmt.errors import UserError
from nmt.export.huggingface import layer_weights, reordered, residual_order
from nmt.imports.vocabulary import Vocabulary, read_object, read_vocabularies
from nmt.model.build import build_model
from nmt.text.tokenizer import Tokenizer

SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
"""The files that may hold the weights."""
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
"""Our names of the activations."""
FIXED = {
    "static_position_embeddings": True,
    "normalize_embedding": False,
    "normalize_before": False,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
}
"""Settings of which our model knows only the value that they have if a config.json lacks them."""
MATRICES = {
    "source": ("model.encoder.embed_tokens.weight", "model.shared.weight"),
    "target": ("model.decoder.embed_tokens.weight", "model.shared.weight"),
    "projection": ("lm_head.weight", "model.decoder.embed_tokens.weight", "model.shared.weight"),
}
"""The names under which the matrix of each use may be stored; the first one that exists counts."""
BIAS = "final_logits_bias"
IGNORED = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
"""Sinusoids, which both programs compute themselves."""
SILENT_BIAS = -100.0
"""The bias of a piece that is never generated: its probability is 0 in float32."""


def read_marian(folder: Path, settings: Config) -> tuple[Config, dict[str, Tensor], Tokenizer]:
    """Read a folder that `MarianMTModel` and `MarianTokenizer` load.

    Return the settings of the run that it becomes, given those of the command; our parameters; and the tokenizer.
    """
    marian, theirs = _read_settings(folder / "config.json"), _read_weights(weights_file(folder))
    source, target = read_vocabularies(folder, marian)
    models = [source.model] if source.model == target.model else [source.model, target.model]
    tokenizer = Tokenizer(*models, name=f"the tokenizer of {folder}")
    try:
        matrices = {
            use: theirs[next((name for name in names if name in theirs), names[0])] for use, names in MATRICES.items()
        }
        first, *others = matrices.values()
        tied = tokenizer.joint and source.rows == target.rows and all(torch.equal(first, each) for each in others)
        has_bias = (BIAS in theirs and bool(theirs[BIAS].any())) or any(target.silent)
        model = _model(marian, tied, has_bias)
        weights = dict(_converted(model, theirs, matrices, source, target))
        with torch.device("meta"):
            expected = build_model(model, tokenizer.source_size, tokenizer.target_size).state_dict()
        for name, each in expected.items():
            if weights[name].shape != each.shape:
                raise IndexError(f"{name} is {list(weights[name].shape)}, not {list(each.shape)}")
    except (KeyError, IndexError, RuntimeError, OverflowError) as error:  # config.json may claim any size
        raise UserError(
            f"{folder}: the weights are not those that config.json and the vocabulary promise "
            f"({str(error).partition(chr(10))[0]:.200}): fetch all files again"
        ) from error
    used = {f"{name}.{kind}" for each in layer_weights(model) for name in each.theirs for kind in ("weight", "bias")}
    if left := theirs.keys() - used - {BIAS, *IGNORED, *(name for names in MATRICES.values() for name in names)}:
        raise UserError(f"{folder} has weights that nmt has no place for, such as {min(left)}: import another model")
    return _run_settings(folder, settings, model, tokenizer), weights, tokenizer


def _run_settings(folder: Path, settings: Config, model: ModelConfig, tokenizer: Tokenizer) -> Config:
    """Return the settings of the run, with the languages that tokenizer_config.json names, if it does."""
    file = folder / "tokenizer_config.json"
    named = read_object(file) if file.is_file() else {}
    source, target = (str(named.get(key) or getattr(settings.data, key)) for key in ("source_lang", "target_lang"))
    return replace(
        settings,
        model=model,
        tokenizer=replace(settings.tokenizer, joint=tokenizer.joint, vocab_size=max(tokenizer.target_size, 8)),
        data=replace(settings.data, source_lang=source, target_lang=target),
    )


def weights_file(folder: Path) -> Path:
    """Return the file of the weights, whose checksum identifies the model."""
    for name in (SAFETENSORS, PICKLE):
        if (folder / name).is_file():
            return folder / name
    raise UserError(f"{folder} has neither {SAFETENSORS} nor {PICKLE}: fetch all files of the model")


def _read_settings(file: Path) -> dict[str, Any]:
    """Return config.json; refuse by name what our model cannot represent."""
    found = FIXED | read_object(file)
    wanted: dict[str, tuple[object, ...]] = {"model_type": ("marian",), "scale_embedding": (True,)}
    wanted |= {key: (value,) for key, value in FIXED.items()}
    wanted |= {f"decoder_{name}": (found.get(f"encoder_{name}"),) for name in ("attention_heads", "ffn_dim")}
    wanted["activation_function"] = tuple(ACTIVATIONS)
    for key, known in wanted.items():
        if found.get(key) not in known:
            raise UserError(
                f"{file} has {key}={found.get(key)}, which nmt's model cannot represent, only "
                f"{' or '.join(map(str, known))}: import another model"
            )
    return found


def _read_weights(file: Path) -> dict[str, Tensor]:
    """Read tensors, and nothing but tensors: a pickle that would create anything else is refused."""
    try:
        with warnings.catch_warnings():  # torch also warns of a pickle that it then refuses
            warnings.simplefilter("ignore")
            is_safe = file.name == SAFETENSORS
            found = load_file(file) if is_safe else torch.load(file, map_location="cpu", weights_only=True)
        return {str(name): each.float() for name, each in found.items()}
    except Exception as error:  # neither library documents what it raises on a forged file
        raise UserError(
            f"{file} is damaged, or has more than tensors in it and could run any code, so it is refused: "
            f"fetch a {SAFETENSORS} of this model"
        ) from error


def _model(marian: Mapping[str, Any], tied: bool, has_bias: bool) -> ModelConfig:
    """Return the settings of our model."""
    layers = marian.get("encoder_layers", 0)  # our settings refuse 0
    return ModelConfig(
        layers=layers,
        decoder_layers=0 if marian.get("decoder_layers") == layers else marian.get("decoder_layers", 0),
        d_model=marian.get("d_model", 0),
        d_ff=marian.get("encoder_ffn_dim", 0),
        heads=marian.get("encoder_attention_heads", 0),
        activation=ACTIVATIONS[marian["activation_function"]],
        tie_embeddings=tied,
        output_bias=has_bias,
    )


def _converted(
    model: ModelConfig,
    theirs: Mapping[str, Tensor],
    matrices: Mapping[str, Tensor],
    source: Vocabulary,
    target: Vocabulary,
) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights under our names; raise KeyError, IndexError or RuntimeError if they do not fit."""
    order = residual_order(matrices["source"].shape[-1]).argsort()
    for use in ("source",) if model.tie_embeddings else matrices:
        rows = matrices[use][(source if use == "source" else target).rows]
        yield f"vectors.{'shared' if model.tie_embeddings else use}", rows[:, order].contiguous()
    if model.output_bias:
        bias = theirs[BIAS][0] if BIAS in theirs else torch.zeros(len(matrices["projection"]))
        yield "vectors.bias", bias[target.rows] + SILENT_BIAS * torch.tensor(target.silent)
    for each in layer_weights(model):
        for kind in ("weight", "bias"):
            whole = torch.cat([theirs[f"{name}.{kind}"] for name in each.theirs])
            yield f"{each.ours}.{kind}", reordered(whole, order, reads=each.reads).contiguous()
