"""Pairs from text files, SGM files and folders of shards, and one clear error for every bad file."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.data.sources.files import inputs, read_pairs
from nmt.data.sources.source import Pair
from nmt.errors import UserError
from tests.unit.data.sources.test_tables import write as write_table

PAIRS = [("a house", "ein Haus"), ("the ships", "die Schiffe"), ("", ""), ("odd\u2028 \rone\x85", "ein\x0b\x1c übles")]


def write(path: Path, lines: list[str], opened: Callable[..., object] = open, end: str = "\n") -> str:
    with opened(path, "wb") as file:  # type: ignore[attr-defined]
        file.write("".join(line + end for line in lines).encode())
    return str(path)


def read(*files: str, languages: tuple[str, str] = ("en", "de"), split: str = "train") -> list[Pair]:
    return list(read_pairs(inputs(files, split), languages))


@pytest.mark.parametrize(("suffix", "opened"), [("", open), (".gz", gzip.open), (".GZ", gzip.open), (".xz", lzma.open)])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_text_files_are_read_line_by_line(tmp_path: Path, suffix: str, opened: Callable[..., object], end: str) -> None:
    files = [write(tmp_path / f"t.{i}{suffix}", [pair[i] for pair in PAIRS], opened, end) for i in (0, 1)]
    assert read(*files) == PAIRS


def test_byte_order_mark_and_missing_last_line_end_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\ntwo")
    (tmp_path / "b").write_bytes(b"eins\nzwei\n")
    assert read(str(tmp_path / "a"), str(tmp_path / "b")) == [("one", "eins"), ("two", "zwei")]


@pytest.mark.parametrize("ending", [".parquet", ".jsonl.gz", ".csv"])
def test_folder_of_shards_gives_the_split_in_order(tmp_path: Path, ending: str) -> None:
    for number in (1, 0):
        write_table(tmp_path / f"train-0000{number}-of-00002{ending}", [{"en": f"train {number}", "de": "x"}])
    write_table(tmp_path / f"validation{ending}", [{"en": "valid", "de": "y"}])
    assert read(str(tmp_path)) == [("train 0", "x"), ("train 1", "x")]
    assert read(str(tmp_path), split="valid") == [("valid", "y")]
    with pytest.raises(UserError, match="holds no shards of test"):
        read(str(tmp_path), split="test")
    (tmp_path / f"train-00000-of-00002{ending}").unlink()
    with pytest.raises(UserError, match=rf"train-00000-of-00002{ending} is missing, though train-00001"):
        read(str(tmp_path))


def test_bad_sets_of_files_are_refused(tmp_path: Path) -> None:
    files = {name: write(tmp_path / name, ["x"] * count) for name, count in (("long", 7), ("short", 4), ("empty", 0))}
    for names, message in (
        (("long", "short"), r"long has 7 sentences, but .*short has 4"),
        (("short", "long"), r"short has 4 sentences, but .*long has 7"),
        (("long", "empty"), "empty is empty"),
        (("long",), r"names 1 file.s. \(text\): give two"),
        (("long", "long", "long"), r"names 3 file.s. \(text, text, text\): give two"),
    ):
        with pytest.raises(UserError, match=message):
            read(*(files[name] for name in names))
    with pytest.raises(UserError, match=r"nowhere does not exist .* check data\.train"):
        read(files["long"], str(tmp_path / "nowhere"))


NUMBERS = "".join(f"line {number * 7919 % 1000}\n" for number in range(5000)).encode()


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("latin", "gut\nauch gut\nschön\n".encode("latin-1"), r"latin, line 3: not UTF-8 \(byte 4 of the line\)"),
        ("a.gz", gzip.compress(NUMBERS, mtime=0)[:-20], r"a\.gz is damaged or cut short"),
        ("a.xz", lzma.compress(NUMBERS)[:-20], r"a\.xz is damaged or cut short"),
        ("a.gz", b"plain text under a wrong name\n", r"a\.gz is damaged"),
        ("a.sgm", b"just text\n", r"a\.sgm holds no <seg> lines"),
        ("a.sgm", b"<seg>a\n<seg>b</seg>", r"a\.sgm, line 2: a <seg> without its </seg>"),
        ("a.sgm", b"<seg>a</seg>\n\n</seg>", r"a\.sgm, line 3: a <seg> without its </seg>"),
        ("a.sgm", b"</seg><seg>a", r"a\.sgm, line 1: a <seg> without its </seg>"),
        ("a.sgm", b"<seg" * 100_000, "seg"),  # a search of each to the end of the file would take hours
        ("a.sgm", b"<seg>\n<seg id=" * 100_000, "seg"),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=complaint):
        read(str(tmp_path / name), str(tmp_path / name))


SOURCE_SET = """<srcset setid="newstest2014" srclang="any">
<doc sysid="ref" docid="abcnews.go.com-2013-12-01" genre="news" origlang="de">
<p>
<seg id="1">Gutach: Noch mehr Sicherheit f&#252;r Fu&#223;g&auml;nger</seg>
<seg id="2">M&amp;S sagt: "5 &lt; 6"</seg>
</p>
</doc>
</srcset>
"""
REFERENCE_SET = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE mteval SYSTEM "ftp://jaguar.ncsl.nist.gov/mt/resources/mteval-xml-v1.3.dtd">
<mteval>
<REFSET setid="newstest2014" srclang="any" trglang="en">
<DOC sysid="ref" docid="abcnews.go.com-2013-12-01" genre="news" origlang="de"><p>
<SEG ID='1'>Gutach: Increased safety
for pedestrians</SEG>
<seg id="2">M&amp;S says: "5 &lt; 6"</seg></p></DOC>
</REFSET>
</mteval>
"""


@pytest.mark.parametrize("opened", [open, gzip.open])
def test_newstest_sets_of_wmt(tmp_path: Path, opened: Callable[..., object]) -> None:
    end = ".gz" if opened is gzip.open else ""
    source = write(tmp_path / f"newstest2014-deen-src.de.sgm{end}", SOURCE_SET.splitlines(), opened)
    reference = write(tmp_path / f"newstest2014-deen-ref.en.sgm{end}", REFERENCE_SET.splitlines(), opened)
    for languages in (("de", "en"), ("de-AT", "en_GB")):
        assert read(source, reference, languages=languages, split="test") == [
            ("Gutach: Noch mehr Sicherheit für Fußgänger", "Gutach: Increased safety for pedestrians"),
            ('M&S sagt: "5 < 6"', 'M&S says: "5 < 6"'),
        ]
    with pytest.raises(UserError, match="says it is in en, but de is wanted: check the order"):
        read(source, reference, languages=("en", "de"))


def test_impossible_character_reference_becomes_a_replacement_character(tmp_path: Path) -> None:
    file = write(tmp_path / "set.sgm", [f"<seg>a &#{'9' * 5000}; &#{'9' * 5000} &#228;</seg>"])
    assert read(file, file) == [("a \ufffd \ufffd ä",) * 2]
