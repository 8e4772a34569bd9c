"""Models to export, for tests."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.config import registry
from nmt.config.data import TokenizerConfig
from nmt.config.decoding import DecodingConfig
from nmt.config.saved import to_yaml
from nmt.config.tree import Config
from nmt.decoding.torch_engine import TorchEngine
from nmt.export.target import Target, TrainedModel
from nmt.model.interface import TranslationModel
from nmt.runs.checkpoint import Checkpoint, CheckpointMeta, load
from nmt.runs.checkpoints import Checkpoints
from nmt.text.tokenizer import Tokenizer
from nmt.text.train_tokenizer import train
from tests.unit.small_models import LINES, make_model, make_tokenizer, teach

DECODING = DecodingConfig(beam=3, extra_length=12)
PACKAGES = {
    "argos": ("ctranslate2", "onnx"),
    "ctranslate2": ("ctranslate2",),
    "huggingface": ("transformers",),
    "onnx": ("onnx", "onnxruntime", "tokenizers"),
    "web": ("onnx", "onnxruntime", "tokenizers"),
}
"""What writes and reads the format of each target."""


def make_plain_tokenizer(model_type: str = "bpe") -> Tokenizer:
    """Return a tokenizer that does not normalise its text, as `nmt data` trains it."""
    settings = TokenizerConfig(vocab_size=40 if model_type == "bpe" else 28, model_type=model_type)
    return Tokenizer(train(LINES * 5, 5 * len(LINES), settings)[0])


def skip_without_packages(target: str) -> None:
    """Skip a test if what writes and reads a format is not installed."""
    for package in PACKAGES[target]:
        if not importlib.util.find_spec(package):
            pytest.skip(f"needs the extra for export.target={target}")


def trained(folder: Path, tokenizer: Tokenizer, model: TranslationModel, quantization: str = "float32") -> TrainedModel:
    """Return a model as the export finds it, saved in a folder."""
    settings = Config(name="small", model=model.config)
    saved = Checkpoints(folder).save(
        Checkpoint(
            meta=CheckpointMeta(step=8),
            weights=model.state_dict(),
            trainer={},
            tokenizer_files=tokenizer.files,
            config_text=to_yaml(settings),
        )
    )
    return TrainedModel(load(saved), settings, tokenizer, DECODING, quantization)


def make_trained(
    folder: Path, target: str, quantization: str = "float32", *, steps: int = 0, **options: Any
) -> tuple[TrainedModel, TranslationModel]:
    """Return a small model that the target can express, and the model itself."""
    plain = target in ("onnx", "web")
    joint = options.get("tie_embeddings") is not False
    tokenizer = make_plain_tokenizer() if plain else make_tokenizer(joint)
    model = make_model(tokenizer, **options)
    if steps:
        teach(model, tokenizer, steps)
    return trained(folder, tokenizer, model, quantization), model


def written(folder: Path, target: str, model: TrainedModel) -> Path:
    """Write an export and return its folder."""
    chosen: Target = registry.load("export.target", target)
    chosen.check(model.settings, model.tokenizer)
    exported = folder / target
    exported.mkdir()
    chosen.write(exported, model)
    return exported


def native(target: str, ours: TranslationModel, model: TrainedModel) -> TorchEngine:
    """Return our engine with the search of the target."""
    chosen: Target = registry.load("export.target", target)
    engine = TorchEngine([ours], model.tokenizer, model.decoding, torch.device("cpu"))
    return chosen.native(engine, model)
