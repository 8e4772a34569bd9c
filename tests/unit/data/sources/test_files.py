"""Pairs from text files, SGM files and folders of shards, and one clear error for every bad file."""

import gzip
import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.config.data import DataConfig
from nmt.data.sources import registry
from nmt.data.sources.files import inputs, named_languages, read_pairs
from nmt.data.sources.source import Pair
from nmt.demo import source as demo
from nmt.errors import UserError
from tests.unit.data.sources.test_tables import write as write_table


def write(path: Path, lines: list[str], opened: Callable[..., object] = open) -> str:
    with opened(path, "wb") as file:  # type: ignore[attr-defined]
        file.write("".join(f"{line}\n" for line in lines).encode())
    return str(path)


def read(*files: str, split: str = "train") -> list[Pair]:
    return list(read_pairs(inputs(files, split), ("en", "de")))


@pytest.mark.parametrize(
    ("shard", "ending"),
    [("train-0000{}-of-00002", ".parquet"), ("train-0000{}-of-00002", ".jsonl.gz"), ("train-{}-of-2", ".csv")],
)
def test_folder_of_shards_gives_the_split_in_order(tmp_path: Path, shard: str, ending: str) -> None:
    first, second = (f"{shard.format(number)}{ending}" for number in range(2))
    for name, source in ((second, "train 1"), (first, "train 0")):
        write_table(tmp_path / name, [{"en": source, "de": "x"}])
    write_table(tmp_path / f"validation{ending}", [{"en": "valid", "de": "y"}])
    assert read(str(tmp_path)) == [("train 0", "x"), ("train 1", "x")]
    assert read(str(tmp_path), split="valid") == [("valid", "y")]
    with pytest.raises(UserError, match="holds no shards of test"):
        read(str(tmp_path), split="test")
    (tmp_path / first).unlink()
    with pytest.raises(UserError, match=rf"{first} is missing, though {second}"):
        read(str(tmp_path))


def test_bad_sets_of_files_are_refused(tmp_path: Path) -> None:
    files = {name: write(tmp_path / name, ["x"] * count) for name, count in (("long", 7), ("short", 4), ("empty", 0))}
    for names, message in (
        (("long", "short"), r"short has 4 sentences, but .*long has more"),
        (("short", "long"), r"short has 4 sentences, but .*long has more"),
        (("long", "empty"), r"empty is empty: check data\.train"),
        (("long", "nowhere"), "nowhere does not exist or is not a file"),
        (("long",), "names 1 file.*: give two"),
        (("long", "long", "long"), "names 3 file.*: give two"),
    ):
        with pytest.raises(UserError, match=message):
            read(*(files.get(name, str(tmp_path / name)) for name in names))


NUMBERS = "".join(f"line {number * 7919 % 1000}\n" for number in range(5000)).encode()


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("latin", "gut\nauch gut\nschön\n".encode("latin-1"), r"latin, line 3: not UTF-8 \(byte 4 of the line\)"),
        ("a", gzip.compress(b"one\n" * 9, mtime=0), "line 1: not UTF-8 .* or decompress it"),
        ("a.gz", gzip.compress(NUMBERS, mtime=0)[:-20], r"a\.gz is damaged or cut short"),
        ("a.xz", lzma.compress(NUMBERS)[:-20], r"a\.xz is damaged or cut short"),
        ("a.gz", b"plain text under a wrong name\n", r"a\.gz is damaged"),
        ("a.sgm", b"just text\n", r"a\.sgm has no <seg>"),
        ("a.sgm", b"<seg>a\n<seg>b</seg>", r"a\.sgm has no <seg>, or one without its </seg>"),
        ("a.sgm", b"<seg>\n<seg id=" * 100_000, "seg"),  # a search of each to the end of the file would take hours
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=complaint):
        read(str(tmp_path / name), str(tmp_path / name))


def test_sgm_files_of_wmt_are_read(tmp_path: Path) -> None:
    source = '<srcset setid="newstest2014" srclang="any">\n<doc>\n<p>\n<SEG id="1">F&#252;r Fu&#223;g&auml;n'
    source += 'ger</SEG>\n<seg id="2">M&amp;S sagt:\n "5 &lt; 6"</seg>\n</p>\n</doc>\n</srcset>'
    reference = '<refset trglang="de"><seg id="1">For pedestrians</seg><seg id="2"></seg></refset>'
    files = write(tmp_path / "a.sgm", [source]), write(tmp_path / "b.sgm.gz", [reference], gzip.open)
    assert read(*files) == [("Für Fußgänger", "For pedestrians"), ('M&S sagt: "5 < 6"', "")]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("text/train.en.gz", "text/train.ja.gz", ("en", "ja")),
        ("train.en.txt.xz", "dev-hr.txt.xz", ("en", "hr")),
        ("europarl-v7.de-en.en", "europarl-v7.de-en.de", ("en", "de")),
        ("s3://mine/en.txt", "s3://mine/zh_CN.txt", ("en", "zh_CN")),
        ("dev.eng_Latn", "train.es-419.txt", ("eng_Latn", "es-419")),
        ("train.src", "train.tgt", None),
        ("a.en", "b.txt", None),
        ("a.en", "b.en", None),
        ("a.fr.parquet", "a.es.parquet", None),
        ("train.EN", "train.DE", None),
    ],
)
def test_names_of_two_files_say_their_languages(source: str, target: str, expected: tuple[str, str] | None) -> None:
    assert named_languages(DataConfig(source="files", train=["table"], valid=[source, target])) == expected
    assert named_languages(DataConfig(source="hub", train=[source, target])) is None


def own_text(folder: Path, pairs: list[Pair]) -> DataConfig:
    sides = zip(*pairs, strict=True)
    names = [write(folder / f"own.{end}", list(side)) for end, side in zip(("en", "de"), sides, strict=True)]
    return DataConfig(source="files", train=names, valid=["v.parquet"], test=["t.parquet"])


@pytest.mark.parametrize("named", [{"valid": [], "test": []}, {"test": []}, {"valid": []}])
def test_held_out_pairs_are_not_in_the_training_text(tmp_path: Path, named: dict[str, Any]) -> None:
    pairs: list[Pair] = [(f"sentence {number // 2}", f"Satz {number}") for number in range(2000)]
    whole = own_text(tmp_path, pairs)
    config = replace(whole, hold_out=0.1, **named)
    found = {split: list(registry.pairs(config, split)) for split in ("train", *named)}
    assert sorted(pair for split_pairs in found.values() for pair in split_pairs) == sorted(pairs)
    places = [{source for source, _ in split_pairs} for split_pairs in found.values()]
    assert sum(map(len, places)) == 1000  # both pairs of a source sentence are in one split
    for split in named:
        assert 140 <= len(found[split]) <= 260
        assert registry.fingerprint(config, split) == registry.fingerprint(whole, "train")
    assert list(registry.pairs(whole, "train")) == pairs


@pytest.mark.parametrize("source", ["en", "de"])
def test_demo_gives_pairs_and_alignments_in_both_directions(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    monkeypatch.setattr(demo, "SIZES", {"train": 3, "valid": 2, "test": 4})
    config = DataConfig(source="demo", source_lang=source, target_lang="de" if source == "en" else "en")
    drawn = demo.draw(demo.SEED, **demo.SIZES)["unseen"]
    pairs = zip(registry.pairs(config, "unseen"), demo.alignments(config, "unseen"), drawn, strict=True)
    for pair, links, expected in pairs:
        found = expected.alignment()
        assert (pair, links) == ((expected.pair, found) if source == "en" else (expected.pair[::-1], found.reversed()))
    with pytest.raises(UserError, match="English and German, or English and trees, not en and fr"):
        registry.pairs(DataConfig(source="demo", target_lang="fr"), "train")
