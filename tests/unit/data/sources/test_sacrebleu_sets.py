"""Test sets that sacreBLEU knows: their text and references, and how they are refused."""

from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset import base as sacrebleu_base

from nmt.config.data import DataConfig
from nmt.data.sources import registry
from nmt.errors import UserError
from tests.integration.toy import write_lines

SOURCES, REFERENCES = ["the dog", "a\u2028cat", "two\x85 birds"], ["der Hund", "eine Katze", "zwei Vögel"]
DATA = DataConfig(test=["sacrebleu:wmt14/full"])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a cache of sacreBLEU with three sentences as wmt14/full."""
    folder = tmp_path / "sacrebleu" / "wmt14" / "full"
    folder.mkdir(parents=True)
    for field in ("src", "ref", "docid", "genre", "origlang"):
        write_lines(folder / f"wmt14_full.en-de.{field}", {"src": SOURCES, "ref": REFERENCES}.get(field, ["en"] * 3))
    monkeypatch.setattr(DATASETS["wmt14/full"], "_outdir", str(folder))
    monkeypatch.setattr(DATASETS["wmt14/full"], "_rawdir", str(folder / "raw"))
    return tmp_path / "sacrebleu"


def test_a_test_set_has_the_lines_that_sacrebleu_counts(cache: Path) -> None:
    assert list(registry.pairs(DATA, "test")) == list(zip(SOURCES, REFERENCES, strict=True))
    assert registry.further_references(DATA, "test") == []
    dataset: Any = DATASETS["wmt14/full"]
    assert len(list(dataset.source("en-de"))) == len(SOURCES)


def test_test_sets_that_cannot_be_had_are_refused_in_one_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise URLError("no network")

    monkeypatch.setattr(sacrebleu_base, "download_file", fail)
    assert registry.fingerprint(DATA, "test")["sacrebleu"] == "wmt14/full"
    assert registry.fingerprint_if_here(DATA, "test") is None, "comparing with what was prepared must not download"
    (cache / "wmt14" / "full" / "wmt14_full.en-de.src").unlink()
    for names, message in (
        (["sacrebleu:wmt14/full"], r"cannot download its test set wmt14/full \(.*no network.*\): run `sacrebleu -t"),
        (["sacrebleu:wmt14/fulll"], "no test set wmt14/fulll; did you mean wmt14/full"),
        (["sacrebleu:wmt14", "sacrebleu:wmt15"], "stands alone"),
        (["sacrebleu:wmt20/dev"], "wmt20/dev has no en-de, only "),
    ):
        with pytest.raises(UserError, match=message):
            registry.fingerprint(DataConfig(test=names), "test")
