"""The text that all engines train on: prepared by `nmt data`, in one vocabulary, and written as others read it."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.compose import compose
from nmt.config.schema import Config
from nmt.data.batches import PairLengths, plan_epoch
from nmt.data.prepare import prepare, require_prepared
from nmt.data.store import PairStore
from nmt.errors import ConfigError, UserError
from nmt.text.tokenizer import Tokenizer

SHAPES = {"tiny": (1, 32, 64, 2), "small": (3, 256, 1024, 4), "base": (6, 512, 2048, 8), "big": (6, 1024, 4096, 16)}
"""Layers of a side, width, inner width, heads; the tiny one is there to see an engine through."""
COMMON = ("model.dropout=0.1", "model.norm_placement=post", "model.positions=sinusoidal", "model.tie_embeddings=true",
          "tokenizer.joint=true", "training.label_smoothing=0.1", "training.device_tokens=0")  # fmt: skip
SPLITS = ("train", "valid", "test")


class Corpus(NamedTuple):
    """A prepared corpus, and how models are trained on it."""

    config: Config
    overrides: list[str]

    @property
    def tokenizer(self) -> Tokenizer:
        """Its tokenizer."""
        return Tokenizer.load(self.config.data_folder)

    def store(self, split: str) -> PairStore:
        """The ids of a split."""
        return PairStore.open(self.config.data_folder, split)

    def job(self, kind: str, precision: str, text: Path, **more: Any) -> dict[str, Any]:
        """A job for any engine: ours reads the overrides, the others what follows from them."""
        config = self.config
        return {
            "kind": kind,
            "precision": precision,
            "overrides": [*self.overrides, f"runtime.precision={precision}"],
            "model": asdict(config.model),
            "training": asdict(config.training),
            "seed": config.seed,
            "data": str(config.data_folder),
            "text": str(text),
            "words": self.tokenizer.target_size,
            **more,
        }


def shape_overrides(shape: str, batch_tokens: int) -> list[str]:
    """Settings of a shape and of the batch."""
    names = ("layers", "d_model", "d_ff", "heads")
    sizes = [f"model.{name}={size}" for name, size in zip(names, SHAPES[shape], strict=True)]
    return [*COMMON, *sizes, f"training.batch_tokens={batch_tokens}"]


def open_corpus(overrides: Sequence[str], threads: int) -> Corpus:
    """Prepare the corpus that the overrides name, unless that is done already."""
    words = [*overrides, "runtime.device=cpu", f"runtime.threads={threads}"]
    config = compose(words)
    if not config.tokenizer.joint:
        raise ConfigError("the benchmark's models share one vocabulary: leave tokenizer.joint=true")
    try:
        require_prepared(config)
    except UserError:
        prepare(config, lambda line: print(line, file=sys.stderr))
    return Corpus(config, words)


def write_text(corpus: Corpus, folder: Path) -> None:
    """Write what other engines read: word pieces with spaces between them, and the vocabulary."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = corpus.tokenizer.vocabularies[0]
    (folder / "vocabulary.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    for split in SPLITS:
        _write_split(corpus.store(split), range(len(corpus.store(split))), pieces, folder / split)
    train, config = corpus.store("train"), corpus.config
    lengths = PairLengths.with_marks(train.source_lengths, train.target_lengths)
    order = plan_epoch(lengths, config.training.batch_tokens, config.seed, epoch=0)
    by_length = [int(index) for batch in range(len(order)) for index in order[batch]]
    _write_split(train, by_length, pieces, folder / "sorted")


def _write_split(store: PairStore, sentences: Sequence[int], pieces: Sequence[str], path: Path) -> None:
    """Write sentences in this order; "sorted" is the training text batch by batch, for engines that do not sort."""
    for side, sentence in (("source", store.source), ("target", store.target)):
        with path.with_suffix(f".{side}").open("w", encoding="utf-8") as file:
            file.writelines(" ".join(pieces[piece] for piece in sentence(index).tolist()) + "\n" for index in sentences)
