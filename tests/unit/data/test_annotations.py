"""Further references and labels: from text files, from columns of tables, and from sacreBLEU's test sets."""

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

from nmt.config.schema import Config, DataConfig, PathsConfig, RuntimeConfig, TokenizerConfig
from nmt.data import prepare, tokenizer_task
from nmt.data.annotations import annotations_name
from nmt.data.sources import sacrebleu_sets
from nmt.errors import ConfigError, UserError
from nmt.evaluation.metrics import score
from nmt.evaluation.split import read_split
from tests.integration.toy import pairs

TEST = [("the dog", "der Hund", "ein Hund", "news"), ("a cat", "eine Katze", "die Katze", "chat"),
        ("two birds", "zwei Vögel", "2 Vögel", "news")]  # fmt: skip
"""Source, two references, and a domain."""


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_task, "run_in_process", lambda function, *args: function(*args))


def write(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def config_with(folder: Path, test: list[str], **data: object) -> Config:
    """Return settings with a toy training text and the given test set."""
    sides = list(zip(*pairs(120, 1), strict=True))
    train = [
        write(folder / f"train.{language}", list(side)) for language, side in zip(("en", "de"), sides, strict=True)
    ]
    settings = DataConfig(corpus="toy", source="files", train=train, valid=train, test=test)
    return replace(
        Config(),
        data=replace(settings, **data),  # type: ignore[arg-type]
        tokenizer=TokenizerConfig(vocab_size=90),
        paths=PathsConfig(data=str(folder / "prepared")),
        runtime=RuntimeConfig(workers=1),
    )


def say_nothing(_: str) -> None:
    """Take a line of progress."""


def test_text_files_after_the_second_are_references(tmp_path: Path) -> None:
    files = [write(tmp_path / f"test.{index}", [row[index] for row in TEST]) for index in range(3)]
    config = config_with(tmp_path, files)
    prepare.prepare(config, say_nothing)
    split = read_split(config.data_folder, "test", ("en", "de"))
    assert split.references == [row[1] for row in TEST]
    assert split.annotations.references == [[row[2] for row in TEST]]
    prepare.prepare(replace(config, data=replace(config.data, test=files[:2])), say_nothing)
    assert not read_split(config.data_folder, "test", ("en", "de")).annotations
    assert not (config.data_folder / annotations_name("test")).exists()


def test_columns_of_tables_are_references_and_labels(tmp_path: Path) -> None:
    rows = [dict(zip(("en", "de", "second", "domain"), row, strict=True)) for row in TEST]
    file = write(tmp_path / "test.jsonl", [json.dumps(row) for row in rows])
    config = config_with(tmp_path, [file], reference_columns=["second"], label_columns=["domain"])
    prepare.prepare(config, say_nothing)
    found = read_split(config.data_folder, "test", ("en", "de")).annotations
    assert found.references == [[row[2] for row in TEST]]
    assert found.labels == {"domain": ["news", "chat", "news"]}


def test_a_reference_of_another_length_is_refused(tmp_path: Path) -> None:
    files = [write(tmp_path / f"test.{index}", [row[index] for row in TEST]) for index in range(3)]
    write(tmp_path / "test.2", ["ein Hund"])
    with pytest.raises(UserError, match=r"data.test has 3 sentences, but a reference or label has 1 lines"):
        prepare.prepare(config_with(tmp_path, files), say_nothing)


def test_three_files_of_training_text_are_refused(tmp_path: Path) -> None:
    config = config_with(tmp_path, [])
    with pytest.raises(UserError, match=r"data.train names 3 file"):
        prepare.prepare(replace(config, data=replace(config.data, train=[*config.data.train, config.data.train[0]],
                                                     test=config.data.train)), say_nothing)  # fmt: skip


def test_columns_need_tables_in_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"need tables in files: data\.source=files"):
        config_with(tmp_path, [], label_columns=["domain"], source="hub")


def test_damaged_annotations_are_refused(tmp_path: Path) -> None:
    files = [write(tmp_path / f"test.{index}", [row[index] for row in TEST]) for index in range(3)]
    config = config_with(tmp_path, files)
    prepare.prepare(config, say_nothing)
    write(config.data_folder / annotations_name("test"), ['{"references": []}'])
    with pytest.raises(UserError, match="is not what was prepared"):
        read_split(config.data_folder, "test", ("en", "de"))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a cache of sacreBLEU with three sentences as wmt14/full."""
    folder = tmp_path / "sacrebleu" / "wmt14" / "full"
    folder.mkdir(parents=True)
    columns = {"src": 0, "ref": 1, "genre": 3}
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
    assert split.annotations.labels == {"origin": ["en"] * 3, "domain": ["news", "chat", "news"]}
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
    found = list(sacrebleu_sets.pairs(data, "test"))
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
