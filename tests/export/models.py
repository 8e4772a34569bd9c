"""Models to export, for tests."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.config import registry
from nmt.config.data import TokenizerConfig
from nmt.config.decoding import DecodingConfig
from nmt.config.tree import Config
from nmt.decoding.torch_engine import TorchEngine
from nmt.export.target import Target, TrainedModel
from nmt.model.interface import TranslationModel
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


def target(name: str) -> Target:
    """Return a target; skip the test if what writes and reads its format is not installed."""
    for package in PACKAGES[name]:
        if not importlib.util.find_spec(package):
            pytest.skip(f"needs the extra for export.target={name}")
    found: Target = registry.load("export.target", name)
    return found


def make_plain_tokenizer(model_type: str = "bpe") -> Tokenizer:
    """Return a tokenizer that does not normalise its text, as `nmt data` trains it."""
    settings = TokenizerConfig(vocab_size=40 if model_type == "bpe" else 28, model_type=model_type)
    return Tokenizer(train(LINES * 5, 5 * len(LINES), settings))


def make_trained(
    name: str, quantization: str = "float32", *, steps: int = 0, **options: Any
) -> tuple[TrainedModel, TranslationModel]:
    """Return a small model that a target can express, and the model itself."""
    joint = options.get("tie_embeddings") is not False
    tokenizer = make_plain_tokenizer() if name in ("onnx", "web") else make_tokenizer(joint)
    model = make_model(tokenizer, **options)
    if steps:
        teach(model, tokenizer, steps)
    settings = Config(name="small", model=model.config)
    return TrainedModel(settings, model.state_dict(), tokenizer, DECODING, quantization), model


def written(folder: Path, name: str, trained: TrainedModel) -> Path:
    """Write an export and return its folder."""
    exported = folder / name
    exported.mkdir(parents=True)
    target(name).check(name, trained)
    target(name).write(exported, trained)
    return exported


def native(name: str, ours: TranslationModel, trained: TrainedModel) -> TorchEngine:
    """Return our engine with the search of the target."""
    engine = TorchEngine([ours], trained.tokenizer, trained.decoding, torch.device("cpu"))
    return target(name).searching(engine, trained)
