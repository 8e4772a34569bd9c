"""A small corpus, and tokenizers that are trained in this process."""

from pathlib import Path
from typing import Any

import pytest

from nmt.config.data import DataConfig, TokenizerConfig
from nmt.config.tree import Config, PathsConfig, RuntimeConfig
from nmt.data import make_tokenizer
from tests.unit.data.corpus import text


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train tokenizers in this process, which is faster than in another one, as `nmt data` does."""
    monkeypatch.setattr(make_tokenizer, "run_in_process", lambda function, *args: function(*args))


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Give a corpus of 300 + 20 + 20 pairs, with one pair of each unusual kind."""
    names: dict[str, Any] = {}
    for number, (split, count) in enumerate((("train", 300), ("valid", 20), ("test", 20))):
        sides = [text(count, 2 * number), text(count, 2 * number + 1)]
        sides[0] += ["", " odd  spacing ", " ".join(text(10, 9))]
        sides[1] += ["x", "\u2028 ", "y"]
        names[split] = [str(tmp_path / f"raw.{split}.{language}") for language in ("en", "de")]
        for name, lines in zip(names[split], sides, strict=True):
            Path(name).write_text("".join(f"{line}\n" for line in lines))
    return Config(
        data=DataConfig(corpus="toy", source="files", max_pieces=40, **names),
        tokenizer=TokenizerConfig(vocab_size=100),
        runtime=RuntimeConfig(workers=1),
        paths=PathsConfig(data=str(tmp_path / "data")),
    )
