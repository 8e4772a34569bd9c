"""The corpus that all engines train on: prepared as by `nmt data`, and written in the format that peers read."""

import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from nmt.cli import composed_settings
from nmt.config.tree import Config
from nmt.data.prepare import prepare
from nmt.data.store import PairStore
from nmt.errors import ConfigError
from nmt.text.tokenizer import Tokenizer

SHAPES = {
    "tiny": (1, 32, 64, 2),
    "narrow": (3, 128, 512, 4),
    "small": (3, 256, 1024, 4),
    "base": (6, 512, 2048, 8),
    "big": (6, 1024, 4096, 16),
}
"""Layers per stack, d_model, d_ff and heads; tiny only checks that an engine runs."""
COMMON = ("model.dropout=0.1", "model.norm_placement=post", "model.positions=sinusoidal", "model.tie_embeddings=true",
          "tokenizer.joint=true", "training.optimizer=adam", "training.label_smoothing=0.1",
          "training.device_tokens=0")  # fmt: skip


class Corpus(NamedTuple):
    """A prepared corpus, and the configuration for training on it."""

    config: Config
    overrides: list[str]

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the prepared corpus."""
        return Tokenizer.load(self.config.data_folder)

    def store(self, split: str) -> PairStore:
        """Open the sentence pairs of a split."""
        return PairStore.open(self.config.data_folder, split)

    def lines(self, split: str, language: str) -> list[str]:
        """Return the lines of one side of a split."""
        return (self.config.data_folder / f"{split}.{language}").read_text(encoding="utf-8").splitlines()

    def job(self, kind: str, precision: str, **extra: Any) -> dict[str, Any]:
        """Return a job for any engine: nmt reads the overrides, the peers the composed settings."""
        config = self.config
        return {
            "kind": kind,
            "precision": precision,
            "device": config.runtime.device,
            "overrides": [*self.overrides, f"runtime.precision={precision}"],
            "model": asdict(config.model),
            "training": asdict(config.training),
            "seed": config.seed,
            "data": str(config.data_folder),
            "vocabulary_size": self.tokenizer.target_size,
            **extra,
        }


def shape_overrides(shape: str, batch_tokens: int) -> list[str]:
    """Return the settings of a model shape and of the batch size."""
    sizes = zip(("layers", "d_model", "d_ff", "heads"), SHAPES[shape], strict=True)
    return [*COMMON, *(f"model.{name}={size}" for name, size in sizes), f"training.batch_tokens={batch_tokens}"]


def open_corpus(overrides: Sequence[str], threads: int, device: str = "cpu") -> Corpus:
    """Open the corpus that the overrides name, by default that of the demo; prepare it first if necessary."""
    if not any(re.match(r"(experiment|data|data\.source|data\.train)=", each) for each in overrides):
        overrides = ["experiment=demo", *overrides]
    overrides = [*overrides, f"runtime.device={device}", f"runtime.threads={threads}"]
    config = composed_settings(overrides)  # with the values derived for the text, as it may have been prepared
    if not config.tokenizer.joint:
        raise ConfigError("the benchmark needs a joint vocabulary: remove tokenizer.joint=false")
    prepare(config, lambda line: print(line, file=sys.stderr))
    return Corpus(config, overrides)


def write_text(corpus: Corpus, folder: Path) -> None:
    """Write what eole reads: the vocabulary, and the training text as space-separated word pieces."""
    pieces = corpus.tokenizer.vocabularies[0]
    (folder / "vocabulary.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    store = corpus.store("train")
    for side, sentence in (("source", store.source), ("target", store.target)):
        with (folder / f"train.{side}").open("w", encoding="utf-8") as file:
            file.writelines(f"{' '.join(pieces[each] for each in sentence(index))}\n" for index in range(len(store)))
