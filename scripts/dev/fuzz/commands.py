"""Targets: settings, command lines, and the standard input of commands."""

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

from hypothesis import strategies as st

from fuzz.campaign import Attempt
from fuzz.prepared import tiny_run
from fuzz.strategies import altered, damaged, json_values, raw_lines, texts
from nmt.commands import score, translate
from nmt.config.commands import TranslateConfig
from nmt.config.compose import compose
from nmt.config.conf_folder import groups
from nmt.config.keys import all_keys, with_values
from nmt.config.saved import flatten, from_yaml, read_settings, to_yaml
from nmt.config.tree import Config
from nmt.data.corpora import corpus_splits
from nmt.data.layout import text_names
from nmt.errors import UserError
from nmt.features.synthesis import command as synthesize
from nmt.features.synthesis.folder import MANIFEST
from nmt.runs.compatibility import check_resumable

NAMES = [
    *("../../x", "/x", "a/../../x", "..", ".", "", "a/b", "a//b", "~", "x\0y", "\udcff", "x" * 300, "a\nb", "con:"),
    *("-", "${seed}", "\x1b[2J", "a b", "é", "\u202e"),
]
"""Names of runs, corpora, languages and splits; none may lead out of its folder."""


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
"""Settings that are invalid, lead out of folders, run code, or expand beyond any memory."""


def overrides(_: Path) -> Attempt:
    """Try words of a command line: the settings can be written and read again, or one error."""

    def check(words: list[str]) -> None:
        config = compose(words)
        assert from_yaml(to_yaml(config)) == config
        check_resumable(read_settings(to_yaml(config)), flatten(asdict(config)))
        _stays_in_its_folder(config)

    more = [
        f"data.mixture.{name}" for name in ("x", "x.train", "x.weight", "x.tag", "x.target_lang", "x.y", "main", "")
    ]
    others = ["hydra.run.dir", "name", "hydra/launcher", "nosuch", ""]
    keys = st.sampled_from([*all_keys(), *all_keys(), *groups(), *more, *others])
    before, between = st.sampled_from(["", "", "", "+", "++", "~", "-"]), st.sampled_from(["=", "=", "", "@x="])
    word = st.builds("{}{}{}{}".format, before, keys, between, st.sampled_from(VALUES) | texts())
    naming = [
        "data.mixture.x.target_lang",
        "name",
        "data.corpus",
        "data.source_lang",
        "data.target_lang",
        "evaluation.splits",
        "paths.outputs",
    ]
    named = st.builds("{}='{}'".format, st.sampled_from(naming), st.sampled_from(NAMES))
    return Attempt(st.lists(word | named | texts(), min_size=1, max_size=3), check)


def settings(_: Path) -> Attempt:
    """Try the settings of a checkpoint, as YAML."""
    whole = to_yaml(Config())

    def check(text: str) -> None:
        _stays_in_its_folder(from_yaml(text))
        check_resumable(read_settings(text), flatten(asdict(Config())))

    trees = altered(asdict(Config())).map(json.dumps)
    broken = damaged(whole.encode()).map(lambda content: content.decode(errors="replace"))
    return Attempt(st.sampled_from(YAML) | broken | trees | json_values().map(json.dumps) | texts(), check)


def translate_input(folder: Path) -> Attempt:
    """Try the standard input of `translate`: it prints a result per line in every format, or one error."""
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
    """Try the standard input of `score`: it prints two numbers before each pair, or one error."""
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


def synthesize_input(folder: Path) -> Attempt:
    """Try files to translate and forged manifests: the shards hold a row per line and do not change, or one error."""
    config = replace(tiny_run(folder), input=str(folder / "text"))
    made = folder / "made"
    config = with_values(config, {"synthesize.folder": str(made), "synthesize.shard_lines": 2})

    def check(value: tuple[bytes, object]) -> None:
        text, change = value
        for file in made.glob("*"):  # shutil.rmtree would name files without their folder, which counts as outside
            file.unlink()
        (folder / "text").write_bytes(text)
        with standard_streams(b""):
            synthesize.run(config)
            before = {shard.name: shard.read_bytes() for shard in sorted(made.glob("train-*"))}
            rows = [json.loads(row) for content in before.values() for row in content.splitlines()]
            assert [row["en"] for row in rows] == lines_of(text)
            assert all(row["score"] <= 0 for row in rows)
            (made / MANIFEST).write_text(json.dumps(change))
            with suppress(UserError):
                synthesize.run(config)
        assert {shard.name: shard.read_bytes() for shard in sorted(made.glob("train-*"))} == before

    return Attempt(st.tuples(raw_lines(), json_values()), check)


def lines_of(text: bytes) -> list[str]:
    """Return the lines of a stream, found independently of the readers."""
    *ended, last = text.decode().removeprefix("\ufeff").split("\n")
    found = [*ended, last] if last else ended
    return [line.rstrip("\r") for line in found]


@contextmanager
def standard_streams(text: bytes) -> Iterator[io.BytesIO]:
    """Replace standard input by a text; yield the captured standard output."""
    output, before = io.BytesIO(), (sys.stdin, sys.stdout)
    sys.stdin, sys.stdout = io.TextIOWrapper(io.BytesIO(text)), io.TextIOWrapper(output, write_through=True)
    try:
        yield output
    finally:
        sys.stdout.detach()
        sys.stdin, sys.stdout = before


def _stays_in_its_folder(config: Config) -> None:
    """Check that the path of every name is inside its folder."""
    data, corpus, outputs = Path("/data"), Path("/data/corpus"), Path("/outputs")
    paths = [(outputs / config.name, outputs), (data / config.data.corpus, data)]
    paths += [(corpus / f"train.{code}.tokens", corpus) for code in (config.data.source_lang, config.data.target_lang)]
    paths += [(corpus / f"{split}.en", corpus) for split in config.evaluation.splits]
    splits = corpus_splits(config.data)
    paths += [(corpus / name, corpus) for each in splits for name in text_names(each.name, each.languages)]
    for path, folder in paths:
        assert folder in path.resolve().parents, f"{path} is outside {folder}"
        assert all(len(part.encode()) < 256 and part.isprintable() for part in path.parts)
