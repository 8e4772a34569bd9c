"""Random odd, damaged and forged input of readers gives a right result or one clear error (`UserError`)."""

import csv
import gzip
import html
import io
import json
import lzma
import os
import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, SearchStrategy

from nmt.config.compose import compose
from nmt.config.keys import all_keys
from nmt.config.saved import check_resumable, flatten, from_yaml, read_settings, to_yaml
from nmt.config.tree import Config
from nmt.data.sources.files import read_pairs
from nmt.data.store import PairStore, writing
from nmt.decoding.torch_engine import load_model
from nmt.errors import UserError
from nmt.export import huggingface
from nmt.export.target import TrainedModel
from nmt.imports.marian import read_marian
from nmt.parsing.linearise import repair
from nmt.parsing.trees import bracketed, clean, leaves, parse_trees
from nmt.runs.checkpoint import load
from nmt.runs.layout import META, SETTINGS, TRAINER, RunLayout
from nmt.text.lines import read_lines
from nmt.text.tokenizer import Tokenizer
from tests.hostile import FRAGMENTS, altered, damaged, json_values, raw_lines, texts, trying
from tests.unit.small_models import make_model, make_tokenizer
from tests.unit.tiny_run import write_tiny_run

Files = dict[str, bytes]
LANGUAGES = ("en", "de")
PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}
LINES = st.lists(texts().map(lambda text: text.rstrip("\r")), max_size=8)
CELLS = texts().map(lambda cell: cell.replace("\t", " ").strip("\r\ufeff"))
QUOTED = texts() | st.sampled_from(["a\nb", "\r\n", 'a,"b"', '"'])
SGM_TAGS = (
    '<srcset setid="x" srclang="en">', "<doc docid='1'>", "<hl>", '<seg id="1">', "<SEG>", "<seg", "</seg>", "</SEG >",
    "<segment>", "<seg id='>'>", "<!--", "&lt;seg&gt;", "&#x110000;", "&nosuch;", "&#" + "9" * 5000 + ";", "&#xd800;",
)  # fmt: skip
SEGMENTS = (*SGM_TAGS, *["<seg>a dog</seg>"] * 40)
BRACKETS = ("(", ")", "(S", "(NP", ")S", "XX", "dog", "-LRB-", "-NONE-", "(NN", "()", "(-NONE-", "\n")
TREES = (*BRACKETS, *["(S (NN dog))"] * 40)
NAMES = ("../../x", "/x", "a/../../x", "..", ".", "", "a/b", "~", "x\0y", "\udcff", "x" * 300, "a\nb", "${seed}", "é")
VALUES = (*NAMES, "null", "[a,b]", "{a: 1}", "nan", "-inf", "1e999", "9" * 5000, "${oc.env:HOME}", "[" * 500, "${")


def repeated(pieces: Sequence[str]) -> SearchStrategy[str]:
    return st.tuples(st.sampled_from(pieces), st.integers(1, 20_000)).map(lambda made: made[0] * made[1])


def wild(pieces: Sequence[str]) -> SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces) | texts(), max_size=20).map(" ".join) | repeated(pieces)


def pairs(path: Path, content: bytes) -> list[Any]:
    path.write_bytes(content)
    return list(read_pairs([path], LANGUAGES))


@trying(st.tuples(LINES, st.sampled_from(sorted(PACKERS)), st.sampled_from(["\n", "\r\n"]), st.booleans()))
def test_lines_end_only_at_line_feeds(tmp_path: Path, content: tuple[list[str], str, str, bool]) -> None:
    lines, suffix, end, marked = content
    path = tmp_path / f"text{suffix}"
    mark = b"\xef\xbb\xbf" if marked and lines else b""
    path.write_bytes(PACKERS[suffix](mark + "".join(line + end for line in lines).encode()))
    if lines:
        lines[0] = lines[0].lstrip("\ufeff")
    assert list(read_lines(path)) == lines


@trying(st.sampled_from(sorted(PACKERS)).flatmap(lambda suffix: st.tuples(st.just(suffix), st.data())))
def test_damaged_text_is_read_or_refused(tmp_path: Path, content: tuple[str, DataObject]) -> None:
    suffix, data = content
    path = tmp_path / f"text{suffix}"
    whole = PACKERS[suffix]("".join(FRAGMENTS * 9).encode() + b"\nline\n" * 50)
    path.write_bytes(data.draw(damaged(whole) | raw_lines().map(PACKERS[suffix])))
    with suppress(UserError):
        list(read_lines(path))


@trying(st.lists(st.lists(CELLS, min_size=2, max_size=2) | st.lists(CELLS, max_size=4), max_size=6))
def test_tab_separated_cells_come_back(tmp_path: Path, content: list[list[str]]) -> None:
    text = "".join("\t".join(row) + "\n" for row in content).encode()
    rows = [row for row in content if row not in ([], [""])]
    if all(len(row) == 2 for row in rows):
        assert pairs(tmp_path / "pairs.tsv", text) == [tuple(row) for row in rows]
    else:
        with pytest.raises(UserError):
            pairs(tmp_path / "pairs.tsv", text)


def normalized(cell: str | None) -> str:
    return "\n".join(line for line in (cell or "").splitlines() if line)


@trying(st.lists(st.tuples(QUOTED | st.just("\ud800"), QUOTED | st.none()), max_size=6))
def test_json_lines_come_back(tmp_path: Path, content: list[tuple[str, str | None]]) -> None:
    text = "".join(json.dumps({"en": source, "de": target}) + "\n" for source, target in content)
    with suppress(UserError):  # lone surrogates
        found = pairs(tmp_path / "pairs.jsonl", text.encode())
        assert found == [(normalized(source), normalized(target)) for source, target in content]


@trying(st.lists(st.tuples(QUOTED, QUOTED), max_size=6))
def test_comma_separated_cells_come_back(tmp_path: Path, content: list[tuple[str, str]]) -> None:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([LANGUAGES, *content])
    found = pairs(tmp_path / "pairs.csv", text.getvalue().encode())
    assert found == [(normalized(source), normalized(target)) for source, target in content]


@trying(
    st.tuples(st.just("tsv"), raw_lines())
    | st.tuples(st.just("csv"), raw_lines().map(lambda lines: b"en,de\n" + lines))
    | st.tuples(st.just("jsonl"), raw_lines() | st.lists(json_values().map(json.dumps)).map("\n".join).map(str.encode))
)
def test_tables_of_anything_are_read_or_refused(tmp_path: Path, content: tuple[str, bytes]) -> None:
    ending, text = content
    with suppress(UserError):
        for pair in pairs(tmp_path / f"pairs.{ending}", text):
            "".join(pair).encode()


@trying(st.lists(texts().map(lambda text: html.escape(text).replace("\r", " ")), min_size=1, max_size=6))
def test_sgm_segments_come_back(tmp_path: Path, content: list[str]) -> None:
    path = tmp_path / "set.sgm"
    path.write_text("".join(f"<seg>{each}</seg>\n" for each in content), newline="\n")
    expected = [" ".join(html.unescape(each).split()) for each in content]
    assert [source for source, _ in read_pairs([path, path], ("en", "en"))] == expected


@trying(wild(SEGMENTS))
def test_odd_sgm_has_a_sentence_per_closed_segment_or_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "set.sgm"
    path.write_text(content, newline="\n")
    with suppress(UserError):
        found = list(read_pairs([path, path], LANGUAGES))
        assert len(found) == len(re.findall(r"</seg\s*>", content, re.IGNORECASE))


@trying(wild(TREES))
def test_trees_come_back_or_are_refused_and_any_line_is_repaired(tmp_path: Path, content: str) -> None:
    found, _ = repair(content, ["a", "dog"])
    assert found is not None
    assert [leaf.word for leaf in leaves(found)] == ["a", "dog"]
    path = tmp_path / "trees.mrg"
    path.write_text(content, newline="\n")
    with suppress(UserError):
        read = [tree for _, tree in parse_trees(read_lines(path), "trees")]
        assert [tree for _, tree in parse_trees(map(bracketed, read), "written")] == read
        list(map(clean, read))


@trying(st.data())
def test_damaged_parquet_is_read_or_refused(tmp_path: Path, content: DataObject) -> None:
    path = tmp_path / "train.parquet"
    rows = [{"de": f"Satz {number % 7}", "en": fragment} for number, fragment in enumerate(FRAGMENTS * 3)]
    kind = content.draw(st.sampled_from(["none", "snappy", "zstd"]))
    pyarrow.parquet.write_table(pyarrow.table({"translation": rows}), path, compression=kind)
    path.write_bytes(content.draw(damaged(path.read_bytes())))
    with suppress(UserError):
        for pair in read_pairs([path], LANGUAGES):
            assert [type(side) for side in pair] == [str, str]


def settings_words() -> SearchStrategy[str]:
    keys = st.sampled_from([*all_keys(), "data.mixture.x.train", "hydra.run.dir", "hydra/launcher", "nosuch", ""])
    before, between = st.sampled_from(["", "", "+", "++", "~", "-"]), st.sampled_from(["=", "=", "", "@x="])
    word = st.builds("{}{}{}{}".format, before, keys, between, st.sampled_from(VALUES) | texts())
    return word | texts()


def named() -> SearchStrategy[tuple[str, str]]:
    naming = st.sampled_from(["name", "data.corpus", "data.source_lang", "evaluation.splits", "paths.outputs"])
    return st.tuples(naming, st.sampled_from(NAMES))


def with_name(word: tuple[str, str]) -> str:
    key, value = word
    group, _, name = key.rpartition(".")
    tree = asdict(Config())
    (tree[group] if group else tree)[name] = [value] if name == "splits" else value
    return json.dumps(tree)


def check_settings(text: str) -> None:
    config = from_yaml(text)
    assert from_yaml(to_yaml(config)) == config
    check_resumable(read_settings(text), flatten(asdict(Config())))
    for path, folder in ((config.run_folder, config.paths.outputs), (config.data_folder, config.paths.data)):
        home = Path(folder).expanduser().resolve()
        assert home in path.resolve().parents, f"{path} is outside {home}"


@trying(st.lists(settings_words(), min_size=1, max_size=3) | named().map(lambda word: ["{}='{}'".format(*word)]))
def test_odd_words_of_the_command_line_are_settings_or_refused(content: list[str]) -> None:
    with suppress(UserError):
        check_settings(to_yaml(compose(content)))


@trying(
    altered(asdict(Config())).map(json.dumps)
    | damaged(to_yaml(Config()).encode()).map(lambda text: text.decode(errors="replace"))
    | json_values().map(json.dumps)
    | named().map(with_name)
)
def test_odd_settings_of_a_checkpoint_are_settings_or_refused(content: str) -> None:
    with suppress(UserError):
        check_settings(content)


def contents(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def write_only(folder: Path, files: Files) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_bytes(text)


def damages(whole: Files) -> SearchStrategy[Files]:
    """Return a strategy in which one file is damaged, altered if it is JSON, replaced by another, or missing."""

    def of(name: str) -> SearchStrategy[Files]:
        changed = damaged(whole[name]) | st.sampled_from(sorted(whole)).map(whole.__getitem__)
        if name.endswith(".json"):
            changed |= altered(json.loads(whole[name])).map(lambda value: json.dumps(value).encode())
        lost = st.just({key: value for key, value in whole.items() if key != name})
        return changed.map(lambda text: whole | {name: text}) | lost

    return st.sampled_from(sorted(whole)).flatmap(of)


@trying(st.data())
def test_verified_store_has_whole_sentences(tmp_path: Path, content: DataObject) -> None:
    folder = tmp_path / "store"
    write_only(folder, {})
    ids, lengths = np.arange(40) % 9 + 4, np.array([5, 0, 15, 20], np.int32)
    with writing(folder, "train", LANGUAGES, 60) as writer:
        writer.append(ids.astype("<u2"), lengths, ids[::-1].astype("<u2"), lengths)
    files = content.draw(damages(contents(folder)))
    if content.draw(st.booleans()):  # with checksums that match
        described = json.loads((folder / "train.store.json").read_text())
        for name in described["files"].keys() & files.keys():
            described["files"][name] |= {"bytes": len(files[name]), "sha256": sha256(files[name]).hexdigest()}
        files["train.store.json"] = json.dumps(described).encode()
    write_only(folder, files)
    with suppress(UserError):
        store = PairStore.open(folder, "train")
        store.verify()
        assert [len(store.source(index)) for index in range(len(store))] == [*store.lengths("source")]
        assert [len(store.target(index)) for index in range(len(store))] == [*store.lengths("target")]


@trying(st.data())
def test_damaged_tokenizer_is_refused_or_works(tmp_path: Path, content: DataObject) -> None:
    make_tokenizer(joint=False).save(tmp_path)
    write_only(tmp_path / "damaged", content.draw(damages(contents(tmp_path))))
    lines = content.draw(LINES)
    with suppress(UserError):
        loaded = Tokenizer.load(tmp_path / "damaged")
        encoded = loaded.encode_target(lines)
        assert all(0 <= piece < loaded.target_size for line in encoded for piece in line)
        for line in encoded:
            loaded.decode(line).encode()


class Evil:
    """Creates a folder when it is unpickled, as code from a file could."""

    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.victim),)


def pickled(victim: Path) -> bytes:
    content = io.BytesIO()
    torch.save({"trainer": Evil(victim)}, content)
    return content.getvalue()


def sealed(files: Files) -> Files:
    """Write matching checksums and a valid seal into meta.json, as an attacker would."""
    with suppress(KeyError, TypeError, ValueError):
        meta = json.loads(files[META])
        meta["files"] = {name: sha256(text).hexdigest() for name, text in files.items() if name != META}
        del meta["seal"]
        meta["seal"] = sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()
        return files | {META: json.dumps(meta).encode()}
    return files


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return RunLayout(write_tiny_run(tmp_path_factory.mktemp("outputs") / "tiny")).averaged.resolve()


@trying(st.data())
def test_damaged_and_forged_checkpoints_are_refused_or_load(
    tmp_path: Path, checkpoint: Path, content: DataObject
) -> None:
    whole, victim, home = contents(checkpoint), tmp_path / "victim", tmp_path / checkpoint.name
    settings = whole[SETTINGS].decode()
    sizes = st.sampled_from([1, 2, 3, 64, 10**6, 10**12, 10**18]).map(
        lambda size: whole | {SETTINGS: re.sub(r"(d_model|d_ff|layers): \d+", rf"\1: {size}", settings).encode()}
    )
    forged = damages(whole) | sizes | st.just(whole | {TRAINER: pickled(victim)})
    write_only(home, content.draw(damages(whole) | forged.map(sealed)))
    with suppress(UserError):
        loaded = load(home, trainer=True)
        load_model(loaded, from_yaml(loaded.config_text).model, torch.device("cpu"))
    assert not victim.exists()


@trying(st.data())
def test_damaged_and_forged_marian_models_are_refused_or_load(tmp_path: Path, content: DataObject) -> None:
    folder, victim = tmp_path / "marian", tmp_path / "victim"
    write_only(folder, {})
    tokenizer = make_tokenizer(joint=False)
    model = make_model(tokenizer, layers=1, d_model=8, d_ff=8, heads=2, tie_embeddings=False)
    huggingface.write(folder, TrainedModel(Config(model=model.config), model.state_dict(), tokenizer))
    whole = contents(folder)
    evil = {name: text for name, text in whole.items() if name != "model.safetensors"}
    write_only(folder, content.draw(damages(whole) | st.just(evil | {"pytorch_model.bin": pickled(victim)})))
    with suppress(UserError):
        read_marian(folder, Config())
    assert not victim.exists()
