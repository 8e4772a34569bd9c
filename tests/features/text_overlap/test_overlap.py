"""Development and test sentences that are also in the training text, counted against sets."""

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.commands import data as command
from nmt.config.schema import Config, DataConfig, PathsConfig, RuntimeConfig, TokenizerConfig
from nmt.data import tokenizer_task
from nmt.data.corpora import CorpusSplit
from nmt.data.records import Manifest, TaskRecord
from nmt.errors import UserError
from nmt.features.text_overlap import overlap, task
from tests.integration.toy import pairs

Texts = list[tuple[str, str]]
TRAIN: Texts = [*pairs(200, 1), ("a b", "c d"), ("twice", "one"), ("twice", "two")]


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_task, "run_in_process", lambda function, *args: function(*args))


def write(folder: Path, name: str, text: Texts) -> list[str]:
    """Write both sides of a text, and return the names of the files."""
    paths = [folder / f"{name}.{language}" for language in ("en", "de")]
    for path, side in zip(paths, zip(*text, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in side))
    return list(map(str, paths))


def config_with(folder: Path, **texts: Texts) -> Config:
    files: dict[str, Any] = {name: write(folder, name, text) for name, text in texts.items()}
    return Config(
        data=DataConfig(corpus="toy", source="files", **files),
        tokenizer=TokenizerConfig(vocab_size=90),
        runtime=RuntimeConfig(workers=1),
        paths=PathsConfig(data=str(folder / "data")),
    )


def test_test_sentences_in_the_training_text_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = config_with(
        tmp_path,
        train=[*TRAIN, ("dropped " * 300, "x")],
        valid=[("a b", "new"), (" a b ", "c d"), ("new", "one"), ("c d", "a b")],
        test=[("dropped " * 300, "y"), ("nothing", "of it"), ("", "")],
    )
    command.run(config)
    found = json.loads((config.data_folder / "manifest.json").read_text())["steps"]["overlap"]["result"]
    assert found == {
        "test": {"sentences": 3, "source": 0, "target": 0, "pair": 0},
        "valid": {"sentences": 4, "source": 2, "target": 2, "pair": 1},
    }
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert "of 4 valid sentences, 2 (50.0%) are also in the training text on the source side, 2 (50.0%)" in warnings[0]
    assert "1 (25.0%) as the same pair" in warnings[0]


@pytest.mark.parametrize("chunk", [7, 100_000])
def test_overlap_with_tagged_text_of_any_corpus_is_counted_in_any_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(overlap, "CHUNK_PAIRS", chunk)
    tagged = DataConfig(tag="<more>")
    test = [*TRAIN[:40], ("new", TRAIN[50][1]), *pairs(30, 9)]
    write(tmp_path, "train", TRAIN[:20])
    write(tmp_path, "more.train", [(f"<more> {source}", target) for source, target in TRAIN[10:]])
    write(tmp_path, "test", test)
    splits = [
        CorpusSplit("main", "train", DataConfig()),
        CorpusSplit("main", "test", DataConfig()),
        CorpusSplit("more", "train", tagged),
    ]
    sources, targets = ({pair[side] for pair in TRAIN} for side in (0, 1))
    assert overlap.count_overlap(tmp_path, splits, lambda _: None) == {
        "test": overlap.Overlap(
            sentences=len(test),
            source=sum(source in sources for source, _ in test),
            target=sum(target in targets for _, target in test),
            pair=sum(pair in TRAIN for pair in test),
        )
    }


@pytest.mark.parametrize(
    ("source", "target", "of_text", "if_targets_repeat"),
    [(0, 3, True, False), (1, 0, True, True), (0, 0, False, False)],
)
def test_equal_targets_that_repeat_anyway_are_no_overlap(
    source: int, target: int, of_text: bool, if_targets_repeat: bool
) -> None:
    counts = overlap.Overlap(sentences=9, source=source, target=target, pair=0)
    assert task.gives_away(counts, targets_repeat=False) is of_text
    assert task.gives_away(counts, targets_repeat=True) is if_targets_repeat


def test_a_damaged_record_is_refused() -> None:
    manifest = Manifest({"overlap": TaskRecord({}, {}, {"test": {"sentences": 1}})})
    with pytest.raises(UserError, match="of another version or damaged"):
        task.OVERLAP.warnings(Config(), manifest)
