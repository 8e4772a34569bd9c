"""Targets: models of other programs."""

import json
from pathlib import Path

import torch
from hypothesis import strategies as st

from fuzz.campaign import Attempt
from fuzz.prepared import Evil, Files, contents, damages, tiny_tokenizer, write_only
from fuzz.strategies import altered
from nmt.config.model import ModelConfig
from nmt.config.tree import Config
from nmt.decoding.torch_engine import TorchEngine
from nmt.features.exports import huggingface
from nmt.features.imports.marian import ImportedModel, read_marian
from nmt.model.build import build_model
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
        _use(read_marian(folder, Config()))

    def forged(name: str) -> st.SearchStrategy[Files]:
        return altered(json.loads(whole[name])).map(lambda value: whole | {name: json.dumps(value).encode()})

    evil = st.just(pickled | {"pytorch_model.bin": Evil.file(folder.with_name("victim"))})
    return Attempt(damages(whole) | st.sampled_from(texts).flatmap(forged) | evil, check)


def _use(imported: ImportedModel) -> None:
    """Score with an accepted model."""
    settings, own = imported.settings, imported.tokenizer
    read = build_model(settings.model, own.source_size, own.target_size)
    read.load_state_dict(imported.weights)
    if all(bool(weight.isfinite().all()) for weight in imported.weights.values()):
        TorchEngine([read.eval()], own, settings.decoding, torch.device("cpu")).score(LINES, LINES)
