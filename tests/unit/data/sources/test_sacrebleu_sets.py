"""Test sets that sacreBLEU knows: their text and references, and how they are refused."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
from sacrebleu.dataset import DATASETS
from sacrebleu.dataset import base as sacrebleu_base

from nmt.config.data import DataConfig, TokenizerConfig
from nmt.config.tree import Config, PathsConfig, RuntimeConfig
from nmt.data import make_tokenizer, prepare
from nmt.data.sources import registry
from nmt.data.sources import sacrebleu_sets as source
from nmt.errors import UserError
from nmt.evaluation.metrics import score
from nmt.evaluation.split import read_split
from tests.integration.toy import pairs

TEST = [("the dog", "der Hund"), ("a cat", "eine Katze"), ("two birds", "zwei Vögel")]


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_tokenizer, "run_in_process", lambda function, *args: function(*args))


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def config_with(folder: Path, test: list[str]) -> Config:
    """Return settings with a toy training text and the given test set."""
    sides = list(zip(*pairs(120, 1), strict=True))
    train = [write(folder / f"train.{end}", list(side)) for end, side in zip(("en", "de"), sides, strict=True)]
    return replace(
        Config(),
        data=DataConfig(corpus="toy", source="files", train=train, valid=train, test=test),
        tokenizer=TokenizerConfig(vocab_size=90),
        paths=PathsConfig(data=str(folder / "prepared")),
        runtime=RuntimeConfig(workers=1),
    )


def say_nothing(_: str) -> None:
    """Take a line of progress."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a cache of sacreBLEU with three sentences as wmt14/full."""
    folder = tmp_path / "sacrebleu" / "wmt14" / "full"
    folder.mkdir(parents=True)
    columns = {"src": 0, "ref": 1}
    for field in ("src", "ref", "docid", "genre", "origlang"):
        lines = [row[columns[field]] if field in columns else "en" for row in TEST]
        write(folder / f"wmt14_full.en-de.{field}", lines)
    monkeypatch.setattr(DATASETS["wmt14/full"], "_outdir", str(folder))
    monkeypatch.setattr(DATASETS["wmt14/full"], "_rawdir", str(folder / "raw"))
    return tmp_path / "sacrebleu"


def test_a_test_set_of_sacrebleu_scores_as_its_own_command_does(tmp_path: Path, cache: Path) -> None:
    config = config_with(tmp_path, ["sacrebleu:wmt14/full"])
    prepare.prepare(config, say_nothing)
    split = read_split(config.data_folder, "test", ("en", "de"))
    assert split.sources == [row[0] for row in TEST]
    assert not split.further_references
    hypotheses = ["der Hund", "eine große Katze", "zwei Vögel dort"]
    command = [sys.executable, "-m", "sacrebleu", "-t", "wmt14/full", "-l", "en-de", "-m", "chrf", "-w", "6"]
    printed = subprocess.run(
        [*command, "-i", write(tmp_path / "hyp", hypotheses)], capture_output=True, check=True,
        env={**os.environ, "SACREBLEU": str(cache)},
    ).stdout  # fmt: skip
    assert round(score(hypotheses, split.references, "de")["chrf"].score, 6) == json.loads(printed)["score"]


def test_a_test_set_has_the_lines_that_sacrebleu_counts(tmp_path: Path, cache: Path) -> None:
    folder = cache / "wmt14" / "full"
    sources = ["one\u2028line", "another\x85line", "a\x0b\x0cthird"]
    write(folder / "wmt14_full.en-de.src", sources)
    write(folder / "wmt14_full.en-de.ref", ["eine", "zwei\u2029", "drei"])
    data = config_with(tmp_path, ["sacrebleu:wmt14/full"]).data
    found = list(source.pairs(data, "test"))
    dataset: Any = DATASETS["wmt14/full"]
    assert [source for source, _ in found] == sources
    assert len(found) == len(list(dataset.source("en-de"))) == len(list(dataset.references("en-de")))
    assert [target.strip() for _, target in found] == ["eine", "zwei", "drei"]


def test_a_test_set_that_cannot_be_downloaded_is_refused_in_one_line(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise URLError("no network")

    monkeypatch.setattr(sacrebleu_base, "download_file", fail)
    (cache / "wmt14" / "full" / "wmt14_full.en-de.src").unlink()
    with pytest.raises(
        UserError, match=r"cannot download its test set wmt14/full \(.*no network.*\): run `sacrebleu -t"
    ):
        prepare.prepare(config_with(tmp_path, ["sacrebleu:wmt14/full"]), say_nothing)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["sacrebleu:wmt14/fulll"], "no test set wmt14/fulll; did you mean wmt14/full"),
        (["sacrebleu:wmt14", "sacrebleu:wmt15"], "stands alone"),
        (["sacrebleu:wmt20/dev"], "wmt20/dev has no en-de, only "),
    ],
)
def test_impossible_test_sets_are_refused(tmp_path: Path, names: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        prepare.prepare(config_with(tmp_path, names), say_nothing)


def test_a_set_is_not_downloaded_to_compare_it_with_what_was_prepared(tmp_path: Path) -> None:
    assert registry.fingerprint_if_here(config_with(tmp_path, ["sacrebleu:wmt14/full"]).data, "test") is None
