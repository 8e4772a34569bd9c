"""A small corpus to prepare."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from nmt.config.data import DataConfig, TokenizerConfig
from nmt.config.tree import Config, PathsConfig, RuntimeConfig
from nmt.data.prepare import prepare

SYLLABLES = ["ba", "ken", "til", "o", "rum", "sche", "ver", "ß", "ing", "pra"]


class KilledError(BaseException):
    """Simulates the end of the process: no code may catch it."""


def killed(*_: object, **__: object) -> None:
    raise KilledError


def text(count: int, seed: int) -> list[str]:
    generator = random.Random(seed)
    words = ["".join(generator.choices(SYLLABLES, k=3)) for _ in range(60)]
    return [" ".join(generator.choices(words, k=generator.randint(2, 9))) for _ in range(count)]


def text_pairs(count: int, seed: int) -> list[tuple[str, str]]:
    return list(zip(text(count, 2 * seed), text(count, 2 * seed + 1), strict=True))


def config_in(folder: Path, vocab_size: int, **data: Any) -> Config:
    """Return settings that prepare the corpus `toy` from files of this folder."""
    return Config(
        data=DataConfig(corpus="toy", source="files", **data),
        tokenizer=TokenizerConfig(vocab_size=vocab_size),
        runtime=RuntimeConfig(workers=1),
        paths=PathsConfig(data=str(folder / "data")),
    )


def table(path: Path, pairs: Sequence[tuple[str, str]], columns: tuple[str, str] = ("en", "de")) -> str:
    """Write pairs as a Parquet file, and return its name."""
    pyarrow.parquet.write_table(pyarrow.table(dict(zip(columns, zip(*pairs, strict=True), strict=True))), path)
    return str(path)


def with_data(config: Config, **changes: Any) -> Config:
    return replace(config, data=replace(config.data, **changes))


def with_tokenizer(config: Config, **changes: Any) -> Config:
    return replace(config, tokenizer=replace(config.tokenizer, **changes))


def append(path: str, line: str) -> int:
    return Path(path).write_text(Path(path).read_text() + line)


def run(config: Config) -> list[str]:
    """Prepare, and return the names of the tasks that ran."""
    said: list[str] = []
    prepare(config, said.append)
    return [line.split(":")[0] for line in said if ": done" in line]
