"""Targets: models of other programs."""

import json
from pathlib import Path

import torch
from hypothesis import strategies as st

from fuzz.campaign import Attempt
from fuzz.prepared import Evil, Files, contents, damages, tiny_tokenizer, write_only
from fuzz.strategies import altered
from nmt.config.saved import to_yaml
from nmt.config.schema import Config, ModelConfig
from nmt.decoding.torch_engine import TorchEngine
from nmt.features.exports import huggingface
from nmt.features.imports.huggingface import HuggingFaceImporter
from nmt.features.imports.importer import ImportedModel
from nmt.features.imports.marian import MarianImporter
from nmt.marian.files import NPZ, write_npz
from nmt.marian.vocabularies import write_vocabularies
from nmt.marian.weights import to_marian
from nmt.model.build import build_model
from nmt.runs.layout import SETTINGS
from nmt.text.tokenizer import Tokenizer

LINES = ["the small cat", "", "sees ß"]


def marian(folder: Path) -> Attempt:
    """Try folders of Marian models: an accepted one translates, a forged one runs no code."""
    tokenizer = Tokenizer(tiny_tokenizer("unigram"), tiny_tokenizer())
    config = ModelConfig(layers=1, d_model=8, d_ff=8, heads=2, tie_embeddings=False)
    model = build_model(config, tokenizer.source_size, tokenizer.target_size)
    huggingface.write(folder, config, model.state_dict(), tokenizer, ("en", "de"), {})
    whole = contents(folder)
    texts = sorted(name for name in whole if name.endswith(".json"))
    pickled = {name: content for name, content in whole.items() if name != "model.safetensors"}

    def check(files: Files) -> None:
        write_only(folder, files)
        _use(HuggingFaceImporter().read(folder, Config()))

    def forged(name: str) -> st.SearchStrategy[Files]:
        return altered(json.loads(whole[name])).map(lambda value: whole | {name: json.dumps(value).encode()})

    evil = st.just(pickled | {"pytorch_model.bin": Evil.file(folder.with_name("victim"))})
    return Attempt(damages(whole) | st.sampled_from(texts).flatmap(forged) | evil, check)


def marian_export(folder: Path) -> Attempt:
    """Try exports for Marian in the same way."""
    tokenizer = Tokenizer(tiny_tokenizer())
    model = build_model(ModelConfig(layers=1, d_model=8, d_ff=8, heads=2), tokenizer.source_size, tokenizer.target_size)
    folder.mkdir(exist_ok=True)
    write_npz(folder / NPZ, to_marian(model.config, model.state_dict()), "")
    write_vocabularies(folder, tokenizer)
    (folder / SETTINGS).write_text(to_yaml(Config(model=model.config)), encoding="utf-8")
    whole = contents(folder)

    def check(files: Files) -> None:
        write_only(folder, files)
        _use(MarianImporter().read(folder, Config()))

    return Attempt(damages(whole), check)


def _use(imported: ImportedModel) -> None:
    """Score with an accepted model."""
    settings, own = imported.settings, imported.tokenizer
    read = build_model(settings.model, own.source_size, own.target_size)
    read.load_state_dict(imported.weights)
    if all(bool(weight.isfinite().all()) for weight in imported.weights.values()):
        TorchEngine([read.eval()], own, settings.decoding, torch.device("cpu")).score(LINES, LINES)
