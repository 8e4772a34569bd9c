"""Targets: the readers of parallel text and of trees."""

import csv
import gzip
import html
import io
import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from fuzz.campaign import Attempt
from fuzz.strategies import FRAGMENTS, damaged, json_values, lines, raw_lines, texts
from nmt.config.data import DataConfig
from nmt.data.sources import hub
from nmt.data.sources.files import inputs, read_pairs
from nmt.data.sources.parquet_tables import count_rows
from nmt.data.sources.source import BY_LANGUAGE, Columns
from nmt.errors import UserError
from nmt.parsing.linearise import repair
from nmt.parsing.trees import bracketed, clean, leaves, parse_trees, read_trees
from nmt.text.lines import read_lines

LANGUAGES = ("en", "de")
PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


def text(folder: Path) -> Attempt:
    """Try two text files, compressed or not: lines come back unchanged and end only at line feeds."""

    def check(value: tuple[list[str], list[str], str, bytes, bool]) -> None:
        *sides, suffix, mark, windows = value
        paths = [folder / f"side.{number}{suffix}" for number in (1, 2)]
        for path, side in zip(paths, sides, strict=True):
            end = "\r\n" if windows else "\n"
            path.write_bytes(PACKERS[suffix]((mark if side else b"") + "".join(line + end for line in side).encode()))
        found = [list(read_lines(path)) for path in paths]
        for side, back in zip(sides, found, strict=True):
            if side:
                side[0] = side[0].lstrip("\ufeff")
            assert back == side
        if len(sides[0]) == len(sides[1]) > 0:
            assert list(read_pairs(inputs([str(path) for path in paths], "train"), LANGUAGES)) == list(
                zip(*sides, strict=True)
            )
        elif sides[0] and sides[1]:
            _must_refuse(lambda: list(read_pairs(paths, LANGUAGES)))

    marks = st.sampled_from([b"", b"", b"\xef\xbb\xbf"])
    return Attempt(st.tuples(lines(), lines(), st.sampled_from(sorted(PACKERS)), marks, st.booleans()), check)


def packed(folder: Path) -> Attempt:
    """Try text files damaged before or after compression: they give one line per line feed, or one error."""
    wholes = {suffix: pack("".join(FRAGMENTS * 20).encode() + b"\nline\n" * 50) for suffix, pack in PACKERS.items()}

    def check(value: tuple[str, bytes]) -> None:
        suffix, content = value
        path = folder / f"text{suffix}"
        path.write_bytes(content)
        found = list(read_lines(path))
        if not suffix:
            assert len(found) == content.count(b"\n") + (not content.endswith(b"\n") and content != b"")

    def file(suffix: str) -> SearchStrategy[tuple[str, bytes]]:
        content = damaged(wholes[suffix]) | raw_lines().map(PACKERS[suffix])
        return st.tuples(st.just(suffix), content)

    return Attempt(st.sampled_from(sorted(PACKERS)).flatmap(file), check)


def tsv(folder: Path) -> Attempt:
    """Try tab-separated columns: they come back unchanged but for empty lines, or one error."""
    path = folder / "pairs.tsv"
    cells = texts().map(lambda cell: cell.replace("\t", " ").strip("\r\ufeff"))
    rows_ = st.lists(st.lists(cells, min_size=2, max_size=2) | st.lists(cells, max_size=4), max_size=6)

    def check(content: list[list[str]] | bytes) -> None:
        if isinstance(content, bytes):
            path.write_bytes(content)
            list(read_pairs([path], LANGUAGES))
            return
        path.write_bytes("".join("\t".join(row) + "\n" for row in content).encode())
        rows = [row for row in content if row not in ([], [""])]
        if any(len(row) != 2 for row in rows):
            _must_refuse(lambda: list(read_pairs([path], LANGUAGES)))
        else:
            assert list(read_pairs([path], LANGUAGES)) == [tuple(row) for row in rows]

    return Attempt(rows_ | raw_lines(), check)


def sgm(folder: Path) -> Attempt:
    """Try sgm test sets: they give one sentence per closed segment, or one error."""
    path = folder / "set.sgm"
    tags = [
        *('<srcset setid="x" srclang="en">', '<refset trglang="de">', "<srcset srclang=any", "<doc docid='1'>", "<hl>"),
        *('<seg id="1">', "<SEG>", "<seg", "</seg>", "</seg>\n", "</SEG >", "<segment>", "<seg id='>'>", "<!--", "]]>"),
        *("&amp;", "&lt;seg&gt;", "&#x110000;", "&#10;", "&nosuch;", "&#" + "9" * 5000 + ";", "&#xd800;", "\n"),
    ]
    wild = st.lists(st.sampled_from(tags) | texts(), max_size=12).map("".join)
    repeated = st.tuples(st.sampled_from(tags), st.integers(1, 20_000)).map(lambda made: made[0] * made[1])
    sentence = texts().map(lambda sentence: html.escape(sentence).replace("\r", " "))
    good = st.lists(sentence, min_size=1, max_size=6)

    def check(content: str | list[str]) -> None:
        if isinstance(content, list):
            path.write_text("".join(f"<seg>{each}</seg>\n" for each in content), newline="\n")
            expected = [" ".join(html.unescape(each).split()) for each in content]
            assert [source for source, _ in read_pairs([path, path], ("en", "en"))] == expected
            return
        path.write_text(content, newline="\n")
        found = list(read_pairs([path, path], LANGUAGES))
        assert len(found) == len(re.findall(r"</seg\s*>", content, re.IGNORECASE))

    return Attempt(wild | repeated | wild.flatmap(lambda text: repeated.map(lambda more: text + more)) | good, check)


def trees(folder: Path) -> Attempt:
    """Try bracketed trees: they come back as they were written, or the file is refused; any line can be repaired."""
    path = folder / "trees.mrg"
    tokens = [*("(", ")", "(S", "(NP", ")", ")S", ")NP", "XX", "dog", "-LRB-", "-NONE-", "(NN", "()", "(-NONE-", "\n")]
    wild = st.lists(st.sampled_from(tokens) | texts(), max_size=30).map(" ".join)
    repeated = st.tuples(st.sampled_from(tokens), st.integers(1, 20_000)).map(lambda made: made[0] * made[1])

    def check(content: str) -> None:
        found, _ = repair(content, ["a", "dog"])
        assert found is not None
        assert [leaf.word for leaf in leaves(found)] == ["a", "dog"]
        path.write_text(content, newline="\n")
        read = [tree for _, tree in read_trees(path)]
        assert list(parse_trees(map(bracketed, read), "written")) == read
        list(map(clean, read))

    return Attempt(wild | repeated, check)


def json_lines(folder: Path) -> Attempt:
    """Try JSON lines: texts come back with normalized line breaks, or one error."""
    path = folder / "pairs.jsonl"
    cells = texts() | st.sampled_from(["a\nb", "\r\n", "\ud800"])
    rows_ = st.lists(st.fixed_dictionaries({"en": cells, "de": cells | st.none()}), max_size=6)
    odd = st.lists(json_values().map(json.dumps), max_size=4).map("\n".join)

    def check(content: list[dict[str, str | None]] | str | bytes) -> None:
        if isinstance(content, list):
            path.write_text("".join(f"{json.dumps(row)}\n" for row in content))
            expected = [(_normalized(row["en"]), _normalized(row["de"])) for row in content]
            assert list(read_pairs([path], LANGUAGES)) == expected
            return
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        for pair in read_pairs([path], LANGUAGES):
            "".join(pair).encode()

    whole = "".join(json.dumps({"en": fragment, "de": fragment}) + "\n" for fragment in FRAGMENTS).encode()
    return Attempt(rows_ | odd | damaged(whole) | raw_lines(), check)


def scores(folder: Path) -> Attempt:
    """Try scores of any kind: each is a number, perhaps not a finite one, or the file is refused."""
    values = json_values() | st.floats() | st.integers() | texts() | st.sampled_from([True, 10**400, "1e999", " 1 "])

    def check(content: tuple[str, object]) -> None:
        ending, value = content
        path = folder / f"pairs.{ending}"
        if ending == "jsonl":
            path.write_text(json.dumps({"en": "a", "de": "b", "score": value}) + "\n")
        else:
            cell = re.sub(r"[\t\r\n]", " ", str(value)).encode("utf-8", "replace")
            path.write_bytes(b"score\ten\tde\n" + cell + b"\ta\tb\n")
        (pair,) = read_pairs([path], LANGUAGES, Columns(score="score"))
        source, target, score = pair
        assert (source, target) == ("a", "b")
        assert isinstance(score, float)

    return Attempt(st.tuples(st.sampled_from(["jsonl", "tsv"]), values), check)


def comma_separated(folder: Path) -> Attempt:
    """Try comma-separated values: cells come back with normalized line breaks, or one error."""
    path = folder / "pairs.csv"
    cells = texts() | st.sampled_from(["a\nb", "\n", 'a,"b"', '"'])
    rows_ = st.lists(st.tuples(cells, cells), max_size=6)

    def check(content: list[tuple[str, str]] | bytes) -> None:
        path.write_bytes(content if isinstance(content, bytes) else _csv([("de", "en"), *content]))
        found = list(read_pairs([path], LANGUAGES))
        if isinstance(content, list):
            assert found == [(_normalized(source), _normalized(target)) for target, source in content]

    whole = _csv([("en", "de"), *((fragment, fragment) for fragment in FRAGMENTS)])
    return Attempt(rows_ | damaged(whole) | raw_lines().map(lambda lines: b"en,de\n" + lines), check)


def _csv(rows_: list[tuple[str, str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows_)
    return text.getvalue().encode()


def _normalized(cell: str | None) -> str:
    return "\n".join(line for line in (cell or "").splitlines() if line)


def parquet(folder: Path) -> Attempt:
    """Try Parquet files: damaged ones, and valid ones with other columns and types."""
    path = folder / "train-00000-of-00001.parquet"

    def check(content: bytes | pyarrow.Table) -> None:
        _write_parquet(path, content)
        count_rows(path)
        for pair in read_pairs([path], LANGUAGES):
            assert [type(side) for side in pair] == [str, str]

    return Attempt(_parquet_files(folder), check)


def local_hub(folder: Path) -> Attempt:
    """Try the same files in a folder of the Hub's layout, which the Hub's library reads."""
    path = folder / "de-en" / "train-00000-of-00001.parquet"
    path.parent.mkdir()
    config = DataConfig(hub_dataset=str(folder), hub_config="de-en", check_counts=False)

    def check(content: bytes | pyarrow.Table) -> None:
        _write_parquet(path, content)
        for pair in hub.read(config, ["train"], LANGUAGES, BY_LANGUAGE):
            assert [type(side) for side in pair] == [str, str]

    return Attempt(_parquet_files(folder), check)


def _parquet_files(folder: Path) -> SearchStrategy[bytes | pyarrow.Table]:
    path = folder / "whole.parquet"
    pairs = [{"de": f"Satz {number % 7}", "en": fragment} for number, fragment in enumerate(FRAGMENTS * 3)]
    wholes = []
    for compression in ("none", "snappy", "zstd"):
        pyarrow.parquet.write_table(pyarrow.table({"translation": pairs}), path, compression=compression)
        wholes.append(path.read_bytes())
    path.unlink()
    bad_text = pyarrow.array([b"\xff\xfe", b"ok", b"\xed\xa0\x80"]).view(pyarrow.string())
    sides: dict[str, pyarrow.Array] = {
        "text": pyarrow.array(["a", None, "b\r\n\0"]),
        "large text": pyarrow.array(["a", "", "b"], pyarrow.large_string()),
        "dictionary": pyarrow.array(["a", "a", None]).dictionary_encode(),
        "not UTF-8": bad_text,
        "bytes": pyarrow.array([b"\xff", b"a", None]),
        "numbers": pyarrow.array([1, 2, None]),
        "lists": pyarrow.array([["a"], [], None]),
        "structures": pyarrow.array([{"x": 1}, None, {"x": 2}]),
        "times": pyarrow.array([1, 2, 3], pyarrow.timestamp("ns")),
        "nothing": pyarrow.nulls(3),
    }
    names = st.sampled_from(["translation", "text", "translation", "", "en", "de"])
    languages = st.sampled_from(["de", "en", "de", "en", "fr", ""])

    def table(drawn: tuple[list[str], list[tuple[str, str]], bool]) -> pyarrow.Table:
        columns, fields, nested = drawn
        arrays = [sides[kind] for kind, _ in fields]
        struct = pyarrow.StructArray.from_arrays(arrays, names=[name for _, name in fields]) if arrays else bad_text
        return pyarrow.Table.from_arrays([struct if nested else sides["text"] for _ in columns], names=columns)

    fields = st.lists(st.tuples(st.sampled_from(sorted(sides)), languages), max_size=4)
    named = st.tuples(st.sampled_from(sorted(sides)), st.sampled_from(sorted(sides))).map(
        lambda kinds: [(kinds[0], "de"), (kinds[1], "en")]
    )
    tables: SearchStrategy[Any] = st.tuples(st.lists(names, min_size=1, max_size=3), fields | named, st.booleans()).map(
        table
    )
    return st.sampled_from(wholes).flatmap(damaged) | tables


def _write_parquet(path: Path, content: bytes | pyarrow.Table) -> None:
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        pyarrow.parquet.write_table(content, path)


def _must_refuse(read: Callable[[], object]) -> None:
    try:
        read()
    except UserError:
        return
    raise AssertionError("invalid input was accepted")
