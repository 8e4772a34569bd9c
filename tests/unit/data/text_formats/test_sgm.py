"""SGM files of WMT's test sets, whole and damaged."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.data.sources.files import inputs, read_pairs
from nmt.data.sources.source import Pair
from nmt.errors import UserError


def write(path: Path, lines: list[str], opened: Callable[..., object] = open) -> str:
    with opened(path, "wb") as file:  # type: ignore[attr-defined]
        file.write("".join(line + "\n" for line in lines).encode())
    return str(path)


def read(*files: str, languages: tuple[str, str] = ("en", "de"), split: str = "train") -> list[Pair]:
    return list(read_pairs(inputs(files, split), languages))


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
    assert len(read(source, reference, languages=("de-AT", "en_GB"), split="test")) == 3
    with pytest.raises(UserError, match="says it is in en, but de is wanted: check the order"):
        read(source, reference, languages=("en", "de"))
    short = write(tmp_path / f"short.de.sgm{end}", SOURCE_SET.splitlines()[:4], opened)
    with pytest.raises(UserError, match=r"short\.de\.sgm(\.gz)? has 1 sentences, but .*ref\.en\.sgm(\.gz)? has 3"):
        read(short, reference, languages=("de", "en"))


@pytest.mark.parametrize(
    ("text", "line"),
    [("<seg>a\n<seg>b</seg>", 2), ("<seg>a</seg>\n\n</seg>", 3), ("<seg>a</seg>\n<seg>b", 2), ("</seg><seg>a", 1)],
)
def test_unclosed_segment_is_refused_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "set.sgm"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"set\.sgm, line {line}: a <seg> without its </seg>"):
        list(read_pairs([path, path], ("en", "de")))


@pytest.mark.parametrize("text", ["<seg", "<srcset", "<seg>", "<seg>\n<seg id="])
def test_unclosed_marks_are_refused_in_linear_time(tmp_path: Path, text: str) -> None:
    path = tmp_path / "set.sgm"
    path.write_text(text * 100_000)  # a search of each to the end of the file would take hours
    with pytest.raises(UserError, match="seg"):
        list(read_pairs([path, path], ("en", "de")))


def test_impossible_character_reference_becomes_a_replacement_character(tmp_path: Path) -> None:
    path = tmp_path / "set.sgm"
    path.write_text(f"<seg>a &#{'9' * 5000}; &#{'9' * 5000} &#228;</seg>")
    assert list(read_pairs([path, path], ("en", "de"))) == [("a \ufffd \ufffd ä",) * 2]


def test_sgm_without_segments_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "x.sgm", ["just text"])
    with pytest.raises(UserError, match=r"x\.sgm holds no <seg> lines"):
        read(file, file)
