"""Development and test sentences that are also in the training text, counted against sets."""

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.commands import data as command
from nmt.config.data import Corpus, DataConfig, TokenizerConfig
from nmt.config.tree import Config, PathsConfig, RuntimeConfig
from nmt.data import overlap, tokenizer_task
from nmt.data import overlap_task as task
from nmt.data.corpora import CorpusSplit
from nmt.data.records import Manifest, TaskRecord
from nmt.errors import UserError
from tests.integration import toy

Texts = list[tuple[str, str]]
LETTERS = str.maketrans("0123456789", "abcdefghij")


def pairs(count: int, seed: int) -> Texts:
    """Return sentence pairs that differ in letters."""
    return [(source.translate(LETTERS), target.translate(LETTERS)) for source, target in toy.pairs(count, seed)]


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
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: of ")]
    assert len(warnings) == 1
    assert "of 4 valid pairs, the source of 2 (50.0%) and the target of 2 (50.0%) are also in the tr" in warnings[0]
    assert "1 (25.0%) as the same pair" in warnings[0]
    assert warnings[0].endswith("(data.drop_overlap=side drops such pairs)")


def _splits(folder: Path, **texts: tuple[str, str, Texts]) -> list[CorpusSplit]:
    """Write the text of splits, given as their languages and pairs, and return them, training text first."""
    splits = []
    for name, (source, target, text) in texts.items():
        for language, side in zip((source, target), zip(*text, strict=True), strict=True):
            split = "test" if name == "test" else "train" if name == "main" else f"{name}.train"
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in side))
        data = DataConfig(source_lang=source, target_lang=target)
        splits.append(CorpusSplit("main" if name == "test" else name, "test" if name == "test" else "train", data))
    return splits


def test_text_in_the_other_direction_is_compared_by_language(tmp_path: Path) -> None:
    test = TRAIN[:40]
    splits = _splits(
        tmp_path,
        main=("en", "de", TRAIN[40:60]),
        reverse=("de", "en", [pair[::-1] for pair in TRAIN[:30]]),
        test=("en", "de", test),
    )
    assert overlap.count_overlap(tmp_path, splits, lambda _: None) == {
        "test": overlap.Overlap(
            sentences=40,
            source=sum(source in {pair[0] for pair in TRAIN[:30] + TRAIN[40:60]} for source, _ in test),
            target=sum(target in {pair[1] for pair in TRAIN[:30] + TRAIN[40:60]} for _, target in test),
            pair=sum(pair in TRAIN[:30] + TRAIN[40:60] for pair in test),
        )
    }


def test_text_of_other_languages_is_no_overlap(tmp_path: Path) -> None:
    splits = _splits(
        tmp_path,
        main=("en", "de", [("one", "eins")]),
        french=("en", "fr", [("two", "OK!"), ("both", "both")]),
        test=("en", "de", [("new", "OK!"), ("neither", "both"), ("two", "zwei")]),
    )
    assert overlap.count_overlap(tmp_path, splits, lambda _: None) == {
        "test": overlap.Overlap(sentences=3, source=1, target=0, pair=0)
    }


def test_warning_names_the_corpus_that_keeps_its_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = Manifest(
        {"overlap": TaskRecord({}, {}, {"test": {"sentences": 4, "source": 1, "target": 1, "pair": 1}})}
    )

    def warned(*filters: str) -> str:
        data = [DataConfig(drop_overlap=each) for each in filters]
        corpora = {str(n): Corpus(each, ("data.", "data.mixture.more.")[n]) for n, each in enumerate(data)}
        monkeypatch.setattr(task, "corpora_of", lambda _: corpora)
        return task.overlap_warnings(Config(), manifest)[0]

    assert warned("", "").endswith("(data.drop_overlap=side drops such pairs)")
    assert warned("side", "pair").endswith("(data.mixture.more.drop_overlap=side drops such pairs)")
    assert "drop_overlap" not in warned("side", "side")


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
        task.overlap_warnings(Config(), manifest)
