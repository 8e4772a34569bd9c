"""Pairs from files of every format, and one clear error for every bad file."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from nmt.data.sources import parquet_tables as parquet
from nmt.data.sources.files import inputs, read_pairs
from nmt.data.sources.source import Pair
from nmt.errors import UserError
from nmt.text.lines import MAX_LINE_BYTES

PAIRS = [("a house", "ein Haus"), ("the ships", "die Schiffe"), ("", ""), ("odd\u2028 \rone\x85", "ein\x0b\x1c übles")]


def write(path: Path, lines: list[str], opened: Callable[..., object] = open, end: str = "\n") -> str:
    with opened(path, "wb") as file:  # type: ignore[attr-defined]
        file.write("".join(line + end for line in lines).encode())
    return str(path)


def write_parquet(
    path: Path, pairs: list[Pair], keys: tuple[str, str] = ("en", "de"), column: str = "translation"
) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{column: dict(zip(keys, pair, strict=True))} for pair in pairs]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return str(path)


def read(*files: str, languages: tuple[str, str] = ("en", "de"), split: str = "train") -> list[Pair]:
    return list(read_pairs(inputs(files, split), languages))


@pytest.mark.parametrize(("suffix", "opened"), [("", open), (".gz", gzip.open), (".xz", lzma.open)])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_text_files_are_read_line_by_line(tmp_path: Path, suffix: str, opened: Callable[..., object], end: str) -> None:
    files = [write(tmp_path / f"t.{i}{suffix}", [pair[i] for pair in PAIRS], opened, end) for i in (0, 1)]
    assert read(*files) == PAIRS


def test_byte_order_mark_and_missing_last_line_end_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\ntwo")
    (tmp_path / "b").write_bytes(b"eins\nzwei\n")
    assert read(str(tmp_path / "a"), str(tmp_path / "b")) == [("one", "eins"), ("two", "zwei")]


def test_tsv_files_are_read_one_after_another(tmp_path: Path) -> None:
    first = write(tmp_path / "a.tsv", ["a\tb", "\t"])
    second = write(tmp_path / "b.tsv.gz", ["c\td"], gzip.open)
    assert read(first, second) == [("a", "b"), ("", ""), ("c", "d")]


def test_sgm_segments_are_unescaped(tmp_path: Path) -> None:
    (tmp_path / "s.en.sgm").write_text(
        '<srcset setid="n14" srclang="any"><doc docid="1">\n<p>\n<seg id="1"> R&amp;D &lt;5&gt; </seg>\n'
        '<seg id="2">two\nlines</seg></p></doc></srcset>'
    )
    (tmp_path / "r.de.sgm").write_text(
        '<refset setid="n14" srclang="any" trglang="de"><doc>'
        '<seg id="1">F&amp;E</seg><seg id="2">&quot;x&quot;</seg></doc>'
    )
    files = str(tmp_path / "s.en.sgm"), str(tmp_path / "r.de.sgm")
    assert read(*files) == [("R&D <5>", "F&E"), ("two lines", '"x"')]
    with pytest.raises(UserError, match=r"r\.de\.sgm says it is in de, but fr is wanted"):
        read(*files, languages=("en", "fr"))


SOURCE_SET = """<srcset setid="newstest2014" srclang="any">
<doc sysid="ref" docid="abcnews.go.com-2013-12-01" genre="news" origlang="de">
<p>
<seg id="1">Gutach: Noch mehr Sicherheit f&#252;r Fu&#223;g&auml;nger</seg>
<seg id="2">M&amp;S sagt: "5 &lt; 6"</seg>
</p>
</doc>
<doc sysid="ref" docid="zeit.de-1" genre="news" origlang="en">
<hl>
<seg id="1">Orlando Bloom und Miranda Kerr lieben sich noch immer</seg>
</hl>
</doc>
</srcset>
"""
REFERENCE_SET = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE mteval SYSTEM "ftp://jaguar.ncsl.nist.gov/mt/resources/mteval-xml-v1.3.dtd">
<mteval>
<REFSET setid="newstest2014" srclang="any" trglang="en">
<DOC sysid="ref" docid="abcnews.go.com-2013-12-01" genre="news" origlang="de"><p>
<SEG ID='1'>Gutach: Increased safety for pedestrians</SEG>
<seg id="2">M&amp;S says: "5 &lt; 6"</seg></p></DOC>
<DOC sysid="ref" docid="zeit.de-1" genre="news" origlang="en"><hl>
<seg id="1">Orlando Bloom and Miranda Kerr
still love each other</seg></hl></DOC>
</REFSET>
</mteval>
"""


@pytest.mark.parametrize("opened", [open, gzip.open])
def test_newstest_sets_of_wmt(tmp_path: Path, opened: Callable[..., object]) -> None:
    end = ".gz" if opened is gzip.open else ""
    source = write(tmp_path / f"newstest2014-deen-src.de.sgm{end}", SOURCE_SET.splitlines(), opened)
    reference = write(tmp_path / f"newstest2014-deen-ref.en.sgm{end}", REFERENCE_SET.splitlines(), opened)
    assert read(source, reference, languages=("de", "en"), split="test") == [
        ("Gutach: Noch mehr Sicherheit für Fußgänger", "Gutach: Increased safety for pedestrians"),
        ('M&S sagt: "5 < 6"', 'M&S says: "5 < 6"'),
        (
            "Orlando Bloom und Miranda Kerr lieben sich noch immer",
            "Orlando Bloom and Miranda Kerr still love each other",
        ),
    ]
    with pytest.raises(UserError, match="says it is in en, but de is wanted: check the order"):
        read(source, reference, languages=("en", "de"))
    short = write(tmp_path / f"short.de.sgm{end}", SOURCE_SET.splitlines()[:4], opened)
    with pytest.raises(UserError, match=r"short\.de\.sgm(\.gz)? has 1 sentences, but .*ref\.en\.sgm(\.gz)? has 3"):
        read(short, reference, languages=("de", "en"))


def test_parquet_columns_are_found_by_language(tmp_path: Path) -> None:
    pairs = [("one\n", "eins"), ("two", "zwei")]
    file = write_parquet(tmp_path / "x.parquet", pairs)
    assert read(file) == [("one", "eins"), ("two", "zwei")]
    assert read(file, languages=("de", "en")) == [("eins", "one"), ("zwei", "two")]


def test_folder_of_shards_gives_the_split_in_order(tmp_path: Path) -> None:
    for number in (1, 0):
        write_parquet(tmp_path / f"train-0000{number}-of-00002.parquet", [(f"train {number}", "x")])
    write_parquet(tmp_path / "validation-00000-of-00001.parquet", [("valid", "y")])
    assert read(str(tmp_path)) == [("train 0", "x"), ("train 1", "x")]
    assert read(str(tmp_path), split="valid") == [("valid", "y")]
    with pytest.raises(UserError, match="holds no shards of test"):
        read(str(tmp_path), split="test")


def test_files_of_different_lengths_are_refused(tmp_path: Path) -> None:
    long, short = write(tmp_path / "long", ["x"] * 7), write(tmp_path / "short", ["x"] * 4)
    with pytest.raises(UserError, match=r"long has 7 sentences, but .*short has 4"):
        read(long, short)
    with pytest.raises(UserError, match=r"short has 4 sentences, but .*long has 7"):
        read(short, long)


def test_missing_empty_and_single_files_are_refused(tmp_path: Path) -> None:
    good, empty = write(tmp_path / "good", ["x"]), write(tmp_path / "empty", [])
    with pytest.raises(UserError, match=r"nowhere does not exist .* check data\.train"):
        read(good, str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="empty is empty"):
        read(good, empty)
    with pytest.raises(UserError, match=r"names 1 file.s. \(text\): give two"):
        read(good)


def test_not_utf8_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("gut\nauch gut\nschön\n".encode("latin-1"))
    good = write(tmp_path / "good", ["x"] * 3)
    with pytest.raises(UserError, match=r"latin, line 3: not UTF-8 \(byte 4 of the line\)"):
        read(str(tmp_path / "latin"), good)


@pytest.mark.parametrize("line", ["one", "a\tb\tc"])
def test_wrong_columns_name_file_and_line(tmp_path: Path, line: str) -> None:
    file = write(tmp_path / "x.tsv", ["a\tb", line])
    with pytest.raises(UserError, match=rf"x\.tsv, line 2: {len(line.split(chr(9)))} column"):
        read(file)


@pytest.mark.parametrize(("suffix", "opened"), [(".gz", gzip.open), (".xz", lzma.open)])
def test_truncated_compressed_file_is_refused(tmp_path: Path, suffix: str, opened: Callable[..., object]) -> None:
    path = tmp_path / f"a{suffix}"
    write(path, [f"line {number * 7919 % 1000}" for number in range(5000)], opened)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UserError, match=rf"a\{suffix} is damaged or cut short"):
        read(str(path), str(path))
    path.write_bytes(b"plain text under a wrong name\n")
    with pytest.raises(UserError, match=rf"a\{suffix} is damaged"):
        read(str(path), str(path))


def test_damaged_parquet_is_refused(tmp_path: Path) -> None:
    whole = Path(write_parquet(tmp_path / "x.parquet", [("one", "eins")] * 500))
    with pytest.raises(UserError, match=r"x\.parquet has no text in the language fr: choose from de, en"):
        read(str(whole), languages=("en", "fr"))
    other = write_parquet(tmp_path / "other.parquet", [("one", "eins")], column="text")
    with pytest.raises(UserError, match=r"other\.parquet has the columns text, but neither `translation`"):
        read(other)
    whole.write_bytes(whole.read_bytes()[:-50])
    with pytest.raises(UserError, match=r"x\.parquet is not a whole Parquet file"):
        read(str(whole))


def test_parquet_with_damaged_names_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MAX_COLUMN_BYTES", 1)
    file = Path(write_parquet(tmp_path / "x.parquet", [("one", "eins")]))
    before, name, after = file.read_bytes().partition(b"\x19\x28\x0btranslation")  # the path of the first column
    file.write_bytes(before + name.replace(b"trans", b"\xff" * 5) + after)
    with pytest.raises(UserError, match=r"x\.parquet is not a whole Parquet file"):
        list(read_pairs([file], ("en", "de")))


def test_parquet_with_huge_columns_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = write_parquet(tmp_path / "long.parquet", [("x" * (MAX_LINE_BYTES + 100), "eins")])
    with pytest.raises(UserError, match=r"long\.parquet has 1,\d+,\d+ bytes in 1 texts of row group 1: write it again"):
        read(long)
    pairs = [(f"number {number}", "eins") for number in range(500)]
    many = write_parquet(tmp_path / "many.parquet", pairs)
    assert read(many) == pairs
    monkeypatch.setattr(parquet, "MAX_COLUMN_BYTES", 2000)
    with pytest.raises(UserError, match=r"many\.parquet has \d,\d+ bytes in 500 texts of row group 1"):
        read(many)


def test_parquet_with_huge_unused_columns_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"translation": {"de": "eins", "en": "one"}, "other": "x" * 5000}] * 3
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "x.parquet")
    monkeypatch.setattr(parquet, "MAX_COLUMN_BYTES", 2000)
    assert read(str(tmp_path / "x.parquet")) == [("one", "eins")] * 3


def test_sgm_without_segments_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "x.sgm", ["just text"])
    with pytest.raises(UserError, match=r"x\.sgm holds no <seg> lines"):
        read(file, file)
