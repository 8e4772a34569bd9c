"""A small corpus to prepare."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from nmt.config.tree import Config
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
