"""Import Hugging Face's Marian models, such as the opus-mt family, and our own exports to that format."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from nmt.config.saved import from_yaml
from nmt.config.schema import Config, ModelConfig
from nmt.errors import ConfigError, UserError
from nmt.features.imports.importer import FETCH_AGAIN, ImportedModel
from nmt.features.imports.marian_vocabulary import Vocabulary, read_vocabularies
from nmt.features.imports.marian_weights import MarianWeights
from nmt.runs.layout import SETTINGS
from nmt.storage.files import read_json
from nmt.text.tokenizer import Tokenizer

SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
"""The files that may hold the weights."""
KINDS = {(str, True)}
"""The types of names, and whether values are tensors, in a file of weights."""
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
"""Our names of the activations."""
REQUIRED: Mapping[str, object] = {
    "model_type": "marian",
    "scale_embedding": True,
    "static_position_embeddings": True,
    "normalize_embedding": False,
    "normalize_before": False,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
}
"""Settings of which our model knows only one value; those that a config.json lacks have it, except the first two."""
SIZES = ("encoder_layers", "decoder_layers", "d_model", "encoder_ffn_dim", "encoder_attention_heads")
"""Settings that are positive whole numbers."""
NEVER_LACKING = ("model_type", "scale_embedding")


class HuggingFaceImporter:
    """Reads a folder that `MarianMTModel.from_pretrained` and `MarianTokenizer.from_pretrained` load."""

    files = "config.json"

    def recognises(self, folder: Path) -> bool:
        """See `Importer.recognises`."""
        return (folder / "config.json").is_file()

    def read(self, folder: Path, settings: Config) -> ImportedModel:
        """See `Importer.read`."""
        marian = _read_settings(folder)
        vocabularies = read_vocabularies(folder, marian)
        weights = MarianWeights(_read_weights(self.weights_file(folder)), folder)
        tokenizer = _tokenizer(folder, vocabularies)
        model = _model(folder, marian, weights, vocabularies, tokenizer)
        converted = weights.convert(model, *vocabularies)
        return ImportedModel(_run_settings(folder, settings, model, tokenizer), converted, tokenizer)

    def weights_file(self, folder: Path) -> Path:
        """See `Importer.weights_file`."""
        for name in (SAFETENSORS, PICKLE):
            if (folder / name).is_file():
                return folder / name
        raise UserError(f"{folder} has neither {SAFETENSORS} nor {PICKLE}: fetch all files of the model")


def _read_settings(folder: Path) -> dict[str, Any]:
    """Return config.json; refuse by name what our model cannot represent."""
    found = read_json(folder / "config.json", FETCH_AGAIN)
    if not isinstance(found, dict):
        raise UserError(f"{folder / 'config.json'} is not the configuration of a model: fetch it again")
    for key, wanted in REQUIRED.items():
        value = found.get(key, None if key in NEVER_LACKING else wanted)
        if value != wanted:
            raise _unknown(folder, key, value, str(wanted))
    for name in ("attention_heads", "ffn_dim"):
        encoder, decoder = (found.get(f"{part}_{name}") for part in ("encoder", "decoder"))
        if encoder != decoder:
            raise _unknown(folder, f"decoder_{name}", decoder, f"the encoder's {encoder}")
    for name in SIZES:
        if type(found.get(name)) is not int or found[name] < 1:
            raise UserError(f"{folder / 'config.json'} has {name}={found.get(name)}, not a size: fetch it again")
    if str(found.get("activation_function")) not in ACTIVATIONS:
        raise _unknown(folder, "activation_function", found.get("activation_function"), " or ".join(ACTIVATIONS))
    return found


def _unknown(folder: Path, key: str, value: object, known: str) -> UserError:
    return UserError(
        f"{folder / 'config.json'} has {key}={value}, which this project's model cannot represent, only {known}: "
        "import another model"
    )


def _read_weights(file: Path) -> dict[str, Tensor]:
    """Read tensors, and nothing but tensors: a pickle that would create anything else is refused."""
    try:
        if file.name == SAFETENSORS:
            return load_file(file)
        with warnings.catch_warnings():  # torch also warns of a pickle that it then refuses
            warnings.simplefilter("ignore")
            found = torch.load(file, map_location="cpu", weights_only=True)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    except SafetensorError as error:
        raise UserError(f"{file} is damaged ({error}): fetch it again") from error
    except Exception as error:  # torch does not document what it raises on a forged file
        raise UserError(
            f"{file} is damaged, or a pickle that contains more than tensors and could run any code, so it is refused: "
            f"use a {SAFETENSORS} of this model"
        ) from error
    if not isinstance(found, dict) or {(type(name), isinstance(each, Tensor)) for name, each in found.items()} != KINDS:
        raise UserError(f"{file} is not a dictionary of tensors: use the {SAFETENSORS} of a model")
    return cast("dict[str, Tensor]", found)


def _tokenizer(folder: Path, vocabularies: tuple[Vocabulary, Vocabulary]) -> Tokenizer:
    """Return our tokenizer: one model if both sides have the same, else two."""
    source, target = (vocabulary.model for vocabulary in vocabularies)
    return Tokenizer(source, None if source == target else target, name=str(folder))


def _model(
    folder: Path,
    marian: Mapping[str, Any],
    weights: MarianWeights,
    vocabularies: tuple[Vocabulary, Vocabulary],
    tokenizer: Tokenizer,
) -> ModelConfig:
    """Return the settings of our model."""
    encoder_layers, decoder_layers = marian["encoder_layers"], marian["decoder_layers"]
    tied = tokenizer.joint and vocabularies[0].rows == vocabularies[1].rows and weights.tied(marian)
    try:
        return ModelConfig(
            layers=encoder_layers,
            decoder_layers=0 if decoder_layers == encoder_layers else decoder_layers,
            d_model=marian["d_model"],
            d_ff=marian["encoder_ffn_dim"],
            heads=marian["encoder_attention_heads"],
            activation=ACTIVATIONS[marian["activation_function"]],
            dropout=float(marian.get("dropout", 0.1)),
            tie_embeddings=tied,
            output_bias=weights.biased or any(vocabularies[1].silent),
        )
    except (ConfigError, TypeError, ValueError) as error:
        raise UserError(f"{folder / 'config.json'} describes no model ({error}): fetch it again") from error


def _run_settings(folder: Path, settings: Config, model: ModelConfig, tokenizer: Tokenizer) -> Config:
    """Return the settings of the run: those that our own exports contain, else those of the command line."""
    exported = folder / SETTINGS
    if exported.is_file():
        saved = from_yaml(exported.read_text(encoding="utf-8", errors="replace"))
        model = replace(model, initialization=saved.model.initialization)
        model = _with_depth_as_saved(model, saved.model)
        settings = replace(saved, name=settings.name, paths=settings.paths)
    source, target = _languages(folder, settings)
    size = max(tokenizer.target_size, 8)
    return replace(
        settings,
        model=model,
        tokenizer=replace(settings.tokenizer, joint=tokenizer.joint, vocab_size=size),
        data=replace(settings.data, source_lang=source, target_lang=target),
    )


def _with_depth_as_saved(model: ModelConfig, saved: ModelConfig) -> ModelConfig:
    """Return the same model, with its depths written as in the saved settings."""
    if (model.encoder_depth, model.decoder_depth) != (saved.encoder_depth, saved.decoder_depth):
        return model
    return replace(model, layers=saved.layers, encoder_layers=saved.encoder_layers, decoder_layers=saved.decoder_layers)


def _languages(folder: Path, settings: Config) -> tuple[str, str]:
    """Return the languages in the tokenizer's settings, else those of the run's settings."""
    file = folder / "tokenizer_config.json"
    found = read_json(file, FETCH_AGAIN) if file.is_file() else {}
    named = found if isinstance(found, dict) else {}
    data = settings.data
    return str(named.get("source_lang") or data.source_lang), str(named.get("target_lang") or data.target_lang)
