"""A small corpus, and tokenizers that are trained in this process."""

from pathlib import Path

import pytest

from nmt.config.tree import Config
from nmt.data import make_tokenizer
from tests.integration.toy import write_sides
from tests.unit.data.corpus import config_in, text, text_pairs


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train tokenizers in this process, which is faster than in another one, as `nmt data` does."""
    monkeypatch.setattr(make_tokenizer, "run_in_process", lambda function, *args: function(*args))


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Give a corpus of 300 + 20 + 20 pairs, with one pair of each unusual kind."""
    odd = [("", "x"), (" odd  spacing ", "\u2028 "), (" ".join(text(10, 9)), "y")]
    sizes = {"train": 300, "valid": 20, "test": 20}
    files = {
        split: write_sides(tmp_path / f"raw.{split}", [*text_pairs(count, number), *odd])
        for number, (split, count) in enumerate(sizes.items())
    }
    return config_in(tmp_path, 100, max_pieces=40, **files)
