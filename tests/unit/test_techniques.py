"""The script that measures techniques for little text."""

import sys
from argparse import Namespace
from pathlib import Path

import pytest

from nmt.config.compose import compose
from techniques import __main__ as techniques

PAIRS = [(f"a dog sees {number} cats", f"ein Hund sieht {number} Katzen") for number in range(60)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The raw text of a corpus; the script writes into the current folder."""
    monkeypatch.chdir(tmp_path)
    raw = tmp_path / "raw"
    raw.mkdir()
    for name, pairs in (("train", PAIRS), ("val", PAIRS[:3]), ("test2016", PAIRS[3:6])):
        for language, side in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            (raw / f"{name}.{language}").write_text("\n".join(side) + "\n", encoding="utf-8")
    return raw


@pytest.fixture
def corpus(folder: Path) -> techniques.Corpus:
    return techniques.Corpus("own", folder, Namespace(pairs=20, steps=8, seeds=3, threads=1, other="large"))


@pytest.mark.slow
def test_every_technique_has_valid_settings_and_a_base(corpus: techniques.Corpus) -> None:
    rows = dict(corpus.techniques())
    base = compose(corpus.base(8))
    for name, technique in rows.items():
        config = compose([*corpus.base(8), *technique.settings])
        assert technique.base in rows
        assert (config == base) == (name == "base")
        for stage, *settings in technique.first:
            assert compose(settings).name.startswith("techniques/"), stage


def test_training_text_is_a_random_part_and_the_unpaired_text_another(corpus: techniques.Corpus) -> None:
    corpus.write_text()
    written = {
        split: list(
            zip(*(Path(f"data/techniques/own.{split}.{each}").read_text().splitlines() for each in ("en", "de")),
                strict=True)
        )
        for split in ("train", "unpaired", "all", "valid", "test")
    }  # fmt: skip
    assert written["all"] == PAIRS
    assert (written["valid"], written["test"]) == (PAIRS[:3], PAIRS[3:6])
    assert len(written["train"]) == len(written["unpaired"]) == 20
    assert len({*written["train"], *written["unpaired"]} & {*PAIRS}) == 40
    assert written["train"] != PAIRS[:20]


def test_a_folder_without_a_split_is_named(corpus: techniques.Corpus, folder: Path) -> None:
    (folder / "val.de").unlink()
    with pytest.raises(SystemExit, match=r"has no file val\*\.de"):
        corpus.write_text()


def test_an_unknown_row_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["techniques", f"own:{folder}", "--rows", "base", "emma"])
    with pytest.raises(SystemExit, match=r"no row emma: choose from .*base, .*ema"):
        techniques.main()


@pytest.mark.slow
def test_rows_are_trained_once_and_compared(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    sizes = ["--pairs=20", "--steps=4", "--seeds=2", "--threads=1", "--rows", "base", "ema"]
    monkeypatch.setattr(sys, "argv", ["techniques", f"own:{folder}", *sizes])
    monkeypatch.setattr(techniques, "SMALL", ("model.d_model=16", "model.d_ff=16", "tokenizer.vocab_size=100"))
    techniques.main()
    first = capfd.readouterr().out
    assert first.count("== nmt train") == 4
    table = first[first.index("| own: technique") :].splitlines()
    assert [line.split(" | ")[0] for line in table[2:]] == ["| base", "| average of the weights (EMA)"]
    assert table[3].endswith("against base |")
    techniques.main()
    assert "== nmt" not in capfd.readouterr().out
