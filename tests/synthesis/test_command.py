"""`nmt synthesize`: its pairs are those of the engine, whatever the processes and interruptions, and are a corpus."""

import json
import os
import shutil
from pathlib import Path

import pytest

from nmt.cli import main
from nmt.compute.machine import prepare_machine
from nmt.config.compose import compose
from nmt.decoding.load import load_engine
from tests.integration.toy import call, refuse, succeed
from tests.quick_processes import start_group

LINES = ["12 the old man sees a stone", "", "the king finds a red tree 7", "   ", "77 the man sees a tree\twith a tab"]
Words = list[str]


@pytest.fixture
def text(corpus: Path, tmp_path: Path) -> Path:
    return write_text(corpus, tmp_path)


@pytest.fixture
def words(settings: Words, whole: Path, text: Path, tmp_path: Path) -> Words:
    return translating(settings, whole, text, tmp_path / "made")


@pytest.fixture(scope="module")
def shards(settings: Words, corpus: Path, whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that was made in the usual way."""
    folder = tmp_path_factory.mktemp("synthesize")
    made(translating(settings, whole, write_text(corpus, folder), folder / "made"))
    return folder / "made"


@pytest.fixture
def copied(shards: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder, which the same command continues."""
    shutil.copytree(shards, tmp_path / "made")
    return tmp_path / "made"


def write_text(corpus: Path, folder: Path) -> Path:
    path = folder / "monolingual.en"
    lines = [*LINES, *(corpus / "train.en").read_text(encoding="utf-8").splitlines()[:30]]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def translating(settings: Words, whole: Path, text: Path, folder: Path) -> Words:
    """Return overrides that translate the text with the run toy, in four shards."""
    return [
        *settings, f"paths.outputs={whole}", "checkpoint=last", f"input={text}", f"output={folder}",
        "synthesize.shard_lines=10", "decoding.batch_tokens=100", "runtime.precision=fp32",
    ]  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("train-*"))}


def made(words: Words) -> str:
    return succeed(["synthesize", *words])


def refused(words: Words) -> str:
    return refuse(["synthesize", *words])


def test_pairs_are_those_of_the_engine_with_their_scores(words: Words, text: Path) -> None:
    search = ["decoding.beam=2", "decoding.nbest=2"]
    said = made([*words, *search])
    folder = text.with_name("made")
    assert "35 lines in 4 shards, 4 to translate" in said
    assert list(contents(folder)) == [f"train-0000{number}-of-00004.jsonl" for number in range(4)]
    rows = [json.loads(line) for content in contents(folder).values() for line in content.splitlines()]
    config = compose([*words, *search, "decoding.batch_tokens=4096"])
    engine = load_engine(config, prepare_machine(config.runtime)).engine
    lines = text.read_text(encoding="utf-8").split("\n")
    translations = engine.translate(lines, token_scores=True)
    expected = [(line, each) for line, found in zip(lines, translations, strict=True) for each in found.candidates]
    assert [(row["en"], row["de"]) for row in rows] == [(line, candidate.text) for line, candidate in expected]
    for row, (_, candidate) in zip(rows, expected, strict=True):
        pieces = len(candidate.tokens) + 1
        mean = candidate.score * ((5 + pieces) / 6) ** config.decoding.alpha / pieces
        assert row["score"] == pytest.approx(mean, abs=1e-3)
    assert rows[config.decoding.nbest] == {"en": "", "de": "", "score": 0.0}


def test_an_interruption_changes_nothing(words: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = ["decoding.strategy=sample"]
    made([*words, *search])
    expected = contents(tmp_path / "made")
    again = [*words, *search, f"output={tmp_path / 'again'}", "runtime.threads=2"]
    syncs, sync = iter(range(100)), os.fsync

    def interrupt(descriptor: int) -> None:
        if next(syncs) == 7:  # two per file, and the manifest is the first
            raise SystemExit(9)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupt)
    assert call(["synthesize", *again]).returncode == 9
    monkeypatch.undo()
    begun = contents(tmp_path / "again")
    assert 0 < len(begun) < 4
    assert "1 to translate" in made(again)
    assert contents(tmp_path / "again") == expected
    assert "0 to translate" in made(again)
    assert not list((tmp_path / "again").glob("*.partial"))


def test_two_processes_make_the_same_shards(words: Words, shards: Path, tmp_path: Path) -> None:
    pair = [*words, f"output={tmp_path / 'pair'}", "runtime.threads=1"]
    ended = [each.wait() for each in start_group(main, ["synthesize", *pair], processes=2)]
    assert [each.returncode for each in ended] == [0, 0], ended
    assert "all 35 lines are translated" in "".join(each.stdout for each in ended)  # the last one to finish reports
    assert contents(tmp_path / "pair") == contents(shards)


def test_shards_are_a_corpus_also_in_the_other_direction(words: Words, copied: Path, tmp_path: Path) -> None:
    kept = [word for word in words if not word.startswith(("data.", "paths.data="))]
    prepared = [
        *kept, f"data.train=[{copied}]", "data.valid=[]", "data.test=[]", "data.hold_out=0.1",
        "data.corpus=made", "data.source_lang=de", "data.target_lang=en",
        f"paths.data={tmp_path / 'data'}", "tokenizer.vocab_size=60",
    ]  # fmt: skip
    succeed(["data", *prepared])
    texts = [(tmp_path / f"data/made/train.{language}").read_text(encoding="utf-8") for language in ("en", "de")]
    found = set(zip(*(text.splitlines() for text in texts), strict=True))
    rows = [json.loads(line) for content in contents(copied).values() for line in content.splitlines()]
    assert found < {(row["en"], row["de"]) for row in rows if row["en"].strip()}
    assert len(found) > 20
    (copied / "train-00002-of-00004.jsonl").unlink()
    assert "train-00002-of-00004.jsonl is missing" in call(["data", *prepared]).stderr


def test_a_folder_made_in_another_way_is_refused(words: Words, text: Path, copied: Path) -> None:
    before = contents(copied)
    for change, said in (
        ("decoding.beam=1", "was begun with another decoding.beam (4, not 1)"),
        ("seed=99", "was begun with another seed (1, not 99)"),
        ("synthesize.shard_lines=11", "was begun with another synthesize.shard_lines (10, not 11)"),
        ("decoding.ensemble=[last]", "was begun with another decoding.ensemble ([], not ["),
    ):
        assert said in refused([*words, change])
    text.write_text("other text\n", encoding="utf-8")
    assert "was begun with another input (" in refused(words)
    assert contents(copied) == before
    manifest = copied / "manifest.json"
    manifest.write_text("{", encoding="utf-8")
    assert f"{manifest} cannot be read as JSON" in refused(words)
    manifest.write_text('{"tasks": {}}')  # as that of a prepared corpus, which must not be deleted
    assert "is not of translations" in refused(words)


def test_bad_input_is_refused_in_one_line(words: Words, text: Path, tmp_path: Path) -> None:
    for change, said in {
        "checkpoint=step-00000099": "checkpoint",
        "input=-": "name the file to translate: input=FILE",
        f"input={tmp_path / 'none'}": "does not exist",
        f"output={tmp_path}": "holds monolingual.en and no manifest.json",
    }.items():
        assert said in refused([*words, change])
    at_an_address = [word for word in words if not word.startswith("output")]
    assert "name a local folder by output=" in refused([*at_an_address, "paths.data=memory://x"])
    text.write_bytes(b"good\nbad \xff\n")
    assert "line 2: not UTF-8" in refused(words)
    text.write_bytes(b"")
    assert "is empty" in refused(words)
    assert not contents(tmp_path / "made")
