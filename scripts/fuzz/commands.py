"""Targets: settings, and what is typed or piped into a stage."""

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

from hypothesis import strategies as st

from nmt.commands import score, translate
from nmt.config.compose import compose
from nmt.config.keys import GROUPS, all_keys
from nmt.config.saved import flatten, from_yaml, read_settings, to_yaml
from nmt.config.schema import Config, TranslateConfig
from nmt.runs.compatibility import check_resumable
from scripts.fuzz.campaign import Attempt
from scripts.fuzz.odd import altered, damaged, json_values, raw_lines, texts
from scripts.fuzz.prepared import tiny_run

NAMES = [
    *("../../x", "/x", "a/../../x", "..", ".", "", "a/b", "a//b", "~", "x\0y", "\udcff", "x" * 300, "a\nb", "con:"),
    *("-", "${seed}", "\x1b[2J", "a b", "é", "\u202e"),
]
"""Names of runs, corpora, languages and splits that must not lead out of the folders they name something in."""


VALUES = [
    *NAMES,
    *(
        "null",
        "[a,b]",
        "{a: 1}",
        "nan",
        "-inf",
        "1e999",
        "9" * 5000,
        "${oc.env:HOME}",
        "[" * 500,
        "${",
        "0x1F",
        "1_000",
    ),
]
_BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise("abcdefghijklmn")
)
YAML = [
    *("", "[", "- a", "a: b: c", "[" * 3000, "{a: " * 3000, "!!python/object/apply:os.mkdir [/x]", "name: !!binary x"),
    *("a: &a [*a]", "model: &a {x: *a}", "? [a]\n: b", "name: ${name}", "name: ${oc.env:HOME}", "name: ???", "\0"),
    *(
        "seed: 0x1F",
        "seed: 1_000",
        "name: 2020-01-01",
        "name: 2020-99-99",
        "training: null",
        "model: [1]",
        "seed: " + "9" * 5000,
    ),
    *("name: ../../x", "data: {source_lang: ../../x}", "evaluation: {splits: [../../x]}", _BOMB),
]
"""Settings that are none, lead elsewhere, run code, or stand for more than fits into memory."""


def overrides(_: Path) -> Attempt:
    """Words of a command line: settings that can be written down and read again, or one error."""

    def check(words: list[str]) -> None:
        config = compose(words)
        assert from_yaml(to_yaml(config)) == config
        check_resumable(read_settings(to_yaml(config)), flatten(asdict(config)))
        _stays_home(config)

    keys = st.sampled_from([*all_keys(), *all_keys(), *GROUPS, "hydra.run.dir", "name", "hydra/launcher", "nosuch", ""])
    before, between = st.sampled_from(["", "", "", "+", "++", "~", "-"]), st.sampled_from(["=", "=", "", "@x="])
    word = st.builds("{}{}{}{}".format, before, keys, between, st.sampled_from(VALUES) | texts())
    naming = ["name", "data.corpus", "data.source_lang", "data.target_lang", "evaluation.splits", "paths.outputs"]
    named = st.builds("{}='{}'".format, st.sampled_from(naming), st.sampled_from(NAMES))
    return Attempt(st.lists(word | named | texts(), min_size=1, max_size=3), check)


def settings(_: Path) -> Attempt:
    """The settings that a checkpoint keeps, as YAML."""
    whole = to_yaml(Config())

    def check(text: str) -> None:
        _stays_home(from_yaml(text))
        check_resumable(read_settings(text), flatten(asdict(Config())))

    trees = altered(asdict(Config())).map(json.dumps)
    broken = damaged(whole.encode()).map(lambda content: content.decode(errors="replace"))
    return Attempt(st.sampled_from(YAML) | broken | trees | json_values().map(json.dumps) | texts(), check)


def translate_input(folder: Path) -> Attempt:
    """Standard input of `translate`: as many lines out as in, in each format, or one error."""
    config = tiny_run(folder)

    def check(value: tuple[bytes, str, int, str]) -> None:
        text, form, nbest, strategy = value
        decoding = replace(config.decoding, nbest=nbest, strategy=strategy)
        with standard_streams(text) as output:
            translate.run(replace(config, translate=TranslateConfig(format=form), decoding=decoding))
        rows = output.getvalue().split(b"\n")
        assert rows.pop() == b""
        expected = lines_of(text)
        if form == "jsonl":
            assert [json.loads(row)["source"] for row in rows] == expected
        elif nbest == 1:
            assert len(rows) == len(expected)
            assert all(row.count(b"\t") == (2 if form == "tsv" else 0) or form == "text" for row in rows)

    formats = st.sampled_from(["text", "tsv", "jsonl"])
    return Attempt(st.tuples(raw_lines(), formats, st.integers(1, 2), st.sampled_from(["beam", "sample"])), check)


def score_input(folder: Path) -> Attempt:
    """Standard input of `score`: each pair comes back with two numbers before it, or one error."""
    config = tiny_run(folder)
    cells = texts().map(lambda cell: cell.replace("\t", " ").strip("\r\ufeff"))
    good = st.lists(st.tuples(cells, cells), max_size=5).map(
        lambda rows: "".join(f"{a}\t{b}\n" for a, b in rows).encode()
    )

    def check(text: bytes) -> None:
        with standard_streams(text) as output:
            score.run(config)
        rows = [row.split("\t") for row in output.getvalue().decode().split("\n")[:-1]]
        assert ["\t".join(row[2:]) for row in rows] == lines_of(text)
        for log_probability, tokens, *_ in rows:
            assert float(log_probability) <= 0 < int(tokens)

    return Attempt(good | raw_lines(), check)


def lines_of(text: bytes) -> list[str]:
    """The lines of a stream, found another way than the readers do."""
    *ended, last = text.decode().removeprefix("\ufeff").split("\n")
    found = [*ended, last] if last else ended
    return [line.rstrip("\r") for line in found]


@contextmanager
def standard_streams(text: bytes) -> Iterator[io.BytesIO]:
    """Give standard input, and take standard output."""
    output, before = io.BytesIO(), (sys.stdin, sys.stdout)
    sys.stdin, sys.stdout = io.TextIOWrapper(io.BytesIO(text)), io.TextIOWrapper(output, write_through=True)
    try:
        yield output
    finally:
        sys.stdout.detach()
        sys.stdin, sys.stdout = before


def _stays_home(config: Config) -> None:
    """Every place that a name leads to lies in the folder that it names something in."""
    data, corpus, outputs = Path("/data"), Path("/data/corpus"), Path("/outputs")
    places = [(outputs / config.name, outputs), (data / config.data.corpus, data)]
    places += [(corpus / f"train.{code}.tokens", corpus) for code in (config.data.source_lang, config.data.target_lang)]
    places += [(corpus / f"{split}.en", corpus) for split in config.evaluation.splits]
    for path, home in places:
        assert home in path.resolve().parents, f"{path} lies outside {home}"
        assert all(len(part.encode()) < 256 and part.isprintable() for part in path.parts)
