"""Preparation from text to ids: each task runs once, runs again when its inputs change, and survives interruption."""

import fcntl
import json
import os
import random
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from nmt.commands import data as command
from nmt.compute.processes import run_in_process
from nmt.config.data import DataConfig, TokenizerConfig
from nmt.config.saved import to_yaml
from nmt.config.tree import Config, PathsConfig, RuntimeConfig
from nmt.data import encode, make_tokenizer, prepare
from nmt.data.filters import pipeline
from nmt.data.manifest import read_manifest
from nmt.data.prepared import require_prepared
from nmt.data.sources import registry
from nmt.data.store import PairStore
from nmt.errors import UserError
from nmt.storage.files import checksum
from nmt.text.tokenizer import Tokenizer

SYLLABLES = ["ba", "ken", "til", "o", "rum", "sche", "ver", "ß", "ing", "pra"]
COLLECTED = ["collect test", "collect valid", "collect train", "overlap"]
ENCODED = ["encode test", "encode valid", "encode train"]
ALL = [*COLLECTED, "tokenizer", *ENCODED]


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train tokenizers in this process, which is faster; one test does it in another process, as `nmt data` does."""
    monkeypatch.setattr(make_tokenizer, "run_in_process", lambda function, *args: function(*args))


def text(count: int, seed: int) -> list[str]:
    generator = random.Random(seed)
    words = ["".join(generator.choices(SYLLABLES, k=3)) for _ in range(60)]
    return [" ".join(generator.choices(words, k=generator.randint(2, 9))) for _ in range(count)]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Give a corpus of 300 + 20 + 20 pairs, with one pair of each unusual kind."""
    raw = tmp_path / "raw"
    raw.mkdir()
    names: dict[str, Any] = {}
    for number, (split, count) in enumerate((("train", 300), ("valid", 20), ("test", 20))):
        sides = [text(count, 2 * number), text(count, 2 * number + 1)]
        sides[0] += ["", " odd  spacing ", " ".join(text(10, 9))]
        sides[1] += ["x", "\u2028 ", "y"]
        names[split] = [str(raw / f"{split}.{language}") for language in ("en", "de")]
        for name, lines in zip(names[split], sides, strict=True):
            Path(name).write_text("".join(f"{line}\n" for line in lines))
    return Config(
        data=DataConfig(corpus="toy", source="files", max_pieces=40, **names),
        tokenizer=TokenizerConfig(vocab_size=100),
        runtime=RuntimeConfig(workers=1),
        paths=PathsConfig(data=str(tmp_path / "data")),
    )


def run(config: Config) -> list[str]:
    """Prepare, and return the names of the tasks that ran."""
    said: list[str] = []
    prepare.prepare(config, said.append)
    return [line.split(":")[0] for line in said if ": done" in line]


def content(config: Config) -> dict[str, str]:
    """Return the checksums of all the prepared files except the manifest, which holds times."""
    return {path.name: checksum(path) for path in config.data_folder.iterdir() if path.name != "manifest.json"}


def records(config: Config) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((config.data_folder / "manifest.json").read_text())["steps"]
    return found


def test_text_and_ids_agree_with_the_source(config: Config) -> None:
    assert run(config) == ALL
    folder = config.data_folder
    tokenizer = Tokenizer.load(folder)
    for language, raw in zip(("en", "de"), config.data.test, strict=True):
        assert (folder / f"test.{language}").read_bytes() == Path(raw).read_bytes()
    for split, pairs in (("train", 300), ("valid", 23), ("test", 23)):
        store = PairStore.open(folder, split)
        store.verify()
        assert len(store) == pairs
        sides = [(folder / f"{split}.{language}").read_text().split("\n")[:-1] for language in ("en", "de")]
        expected = list(zip(tokenizer.encode_source(sides[0]), tokenizer.encode_target(sides[1]), strict=True))
        if split == "train":
            expected = [pair for pair in expected if max(map(len, pair)) <= 40]
        assert [(store.source(i).tolist(), store.target(i).tolist()) for i in range(len(store))] == expected


def test_manifest_records_the_counts_of_each_task(config: Config) -> None:
    run(config)
    folder = config.data_folder
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["source"] == {"kind": "files", **{s: getattr(config.data, s) for s in ("train", "valid", "test")}}
    tasks = manifest["steps"]
    assert list(tasks) == ALL
    collected, encoded = tasks["collect train"]["result"], tasks["encode train"]["result"]
    assert (collected["read"], collected["kept"]) == (303, 301)
    assert collected["dropped"] == {"empty": 2, "control characters": 0, "words": 0}
    assert (encoded["pairs"], encoded["dropped"]) == (300, {"pieces": 1})
    store = PairStore.open(folder, "train")
    assert encoded["source"]["tokens"] == store.source_lengths.sum()
    assert encoded["source"]["max_length"] == store.source_lengths.max()
    assert encoded["source"]["unknown"] == 0
    assert (
        tasks["encode test"]["result"]["target"]["unknown"]
        == (PairStore.open(folder, "test").columns["target"].tokens == 0).sum()
        > 0
    )
    for record in tasks.values():
        for name, sum_ in record["outputs"].items():
            assert checksum(folder / name) == sum_
    assert tasks["tokenizer"]["result"]["lines"][0]["offered"] == 602


def test_second_run_without_changes_does_nothing(config: Config) -> None:
    run(config)
    before = {path: path.stat().st_mtime_ns for path in config.data_folder.iterdir()}
    for raw in config.data.train:
        os.utime(raw, (1, 1))
    assert run(config) == []
    assert {path: path.stat().st_mtime_ns for path in config.data_folder.iterdir()} == before


def with_data(config: Config, **changes: Any) -> Config:
    return replace(config, data=replace(config.data, **changes))


def append(path: str, line: str) -> None:
    Path(path).write_text(Path(path).read_text() + line)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: replace(c, tokenizer=replace(c.tokenizer, vocab_size=90)), ["tokenizer", *ENCODED]),
        (lambda c: with_data(c, max_pieces=50), ["encode train"]),
        (lambda c: with_data(c, deduplicate=True), ["collect train"]),
        (lambda c: with_data(c, max_words=3), ["collect train", "overlap", "tokenizer", *ENCODED]),
        (lambda c: with_data(c, source_lang="de", target_lang="en"), ALL),
    ],
)
def test_changed_settings_run_dependent_tasks_again(
    config: Config, change: Callable[[Config], Config], expected: list[str]
) -> None:
    run(config)
    changed = change(config)
    assert run(changed) == expected
    assert run(changed) == []


def test_changed_text_runs_dependent_tasks_again(config: Config) -> None:
    run(config)
    size = Path(config.data.test[0]).stat()
    Path(config.data.test[0]).write_text(Path(config.data.test[0]).read_text().swapcase())
    os.utime(config.data.test[0], ns=(size.st_atime_ns, size.st_mtime_ns))
    assert run(config) == ["collect test", "overlap", "encode test"]
    for raw in config.data.train:
        append(raw, "new\n")
    assert run(config) == ["collect train", "overlap", "tokenizer", *ENCODED]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("train.en", ["collect train"]),
        ("tokenizer.model", ["tokenizer"]),
        ("valid.de.tokens", ["encode valid"]),
        ("train.store.json", ["encode train"]),
    ],
)
@pytest.mark.parametrize("damage", ["gone", "flipped"])
def test_damaged_output_is_written_again(config: Config, name: str, expected: list[str], damage: str) -> None:
    run(config)
    before = content(config)
    path = config.data_folder / name
    if damage == "gone":
        path.unlink()
    else:
        whole = bytearray(path.read_bytes())
        whole[len(whole) // 2] ^= 1
        path.write_bytes(whole)
    assert run(config) == expected
    assert content(config) == before


class KilledError(BaseException):
    """Simulates the end of the process: no code may catch it."""


@pytest.mark.parametrize("write", range(1, 30, 9))
def test_interrupted_run_resumes_to_the_same_corpus(
    config: Config, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    """Stop at the n-th rename; the next run gives the same corpus as an uninterrupted one."""
    whole = with_data(config, corpus="whole")
    run(whole)
    left = write
    rename = Path.replace

    def counting(self: Path, target: Path) -> Path:
        nonlocal left
        left -= 1
        if not left:
            raise KilledError
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", counting)
        with pytest.raises(KilledError):
            run(config)
    run(config)
    assert content(config) == content(whole)


SCRIPT = """
import sys, time
import nmt.data.{module} as module
from tests_config import config
original = module.{function}
def slow(*args, **kwargs):
    print("here", flush=True)
    time.sleep(60)
module.{function} = slow
from nmt.data.prepare import prepare
prepare(config, lambda line: None)
"""


@pytest.mark.parametrize(
    ("module", "function", "done"),
    [
        ("filters.pipeline", "read_chunks", []),
        ("make_tokenizer", "run_in_process", COLLECTED),
        ("encode", "_flat", [*COLLECTED, "tokenizer"]),
    ],
)
def test_killed_run_repeats_unfinished_tasks(
    config: Config, tmp_path: Path, module: str, function: str, done: list[str]
) -> None:
    saved = f"from nmt.config.saved import from_yaml\nconfig = from_yaml({to_yaml(config)!r})\n"
    (tmp_path / "tests_config.py").write_text(saved, encoding="utf-8")
    script = SCRIPT.format(module=module, function=function)
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout
    assert process.stdout.readline() == b"here\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(records(config) if done else {}) == done
    assert list(config.data_folder.glob("*.partial")) or module == "make_tokenizer"
    assert run(config) == [task for task in ALL if task not in done]
    assert not list(config.data_folder.glob("*.partial"))
    run(with_data(config, corpus="whole"))
    assert content(config) == content(with_data(config, corpus="whole"))


def test_several_processes_give_the_same_corpus_as_one(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    run(config)
    monkeypatch.setattr(encode, "CHUNK_PAIRS", 40)
    monkeypatch.setattr(make_tokenizer, "run_in_process", run_in_process)
    several = with_data(replace(config, runtime=RuntimeConfig(workers=2)), corpus="several")
    run(several)
    assert content(several) == content(config)


def test_corpus_does_not_depend_on_the_size_of_chunks(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    run(config)
    monkeypatch.setattr(pipeline.read_chunks, "__defaults__", (7,))
    other = with_data(config, corpus="other")
    run(other)
    assert content(other) == content(config)


def test_second_process_waits_for_the_first(config: Config) -> None:
    config.data_folder.mkdir(parents=True)
    said: Queue[str] = Queue()
    with ThreadPoolExecutor() as pool:
        with (config.data_folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            preparing = pool.submit(prepare.prepare, config, said.put)
            assert "toy is being prepared by another process: waiting" in said.get(timeout=60)
            assert not list(config.data_folder.glob("*.json"))
        assert list(preparing.result(timeout=60).tasks) == ALL


def test_folder_that_cannot_be_created_is_named(config: Config, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write to .*file.toy: Not a directory.* paths\.data"):
        run(replace(config, paths=PathsConfig(data=str(tmp_path / "file"))))


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_full_disk_leaves_no_incomplete_file(config: Config) -> None:
    with files_of_at_most(5000), pytest.raises(UserError, match=r"cannot write .*train\.(en|de): "):
        run(config)
    assert not list(config.data_folder.glob("train*"))
    assert not list(config.data_folder.glob("*.partial"))
    assert run(config) == ALL[2:]


def test_missing_input_is_found_before_anything_is_written(config: Config) -> None:
    Path(config.data.train[0]).unlink()
    with pytest.raises(UserError, match=r"train\.en does not exist"):
        run(config)
    assert not list(config.data_folder.glob("test*"))


def test_failed_collection_leaves_no_text(config: Config) -> None:
    append(config.data.train[1], "one more\n")
    with pytest.raises(UserError, match=r"has 303 sentences, but .* has 304"):
        run(config)
    assert not list(config.data_folder.glob("train*"))


def test_filters_that_leave_no_pair_are_an_error(config: Config) -> None:
    with pytest.raises(UserError, match=r"leave none of the 303 pairs of train .*words 301.*loosen"):
        run(with_data(config, max_words=1))
    with pytest.raises(UserError, match="no pair of train has 2 pieces or fewer"):
        run(with_data(config, max_pieces=2))


def test_nul_in_a_test_pair_is_refused(config: Config, tmp_path: Path) -> None:
    for side, content_ in zip((0, 1), ("a\nb\0c\n", "a\nb\n"), strict=True):
        Path(config.data.test[side]).write_text(content_)
    with pytest.raises(UserError, match="pair 2 of test holds a NUL"):
        run(config)


def test_vocabulary_too_large_for_the_text_is_refused(config: Config) -> None:
    with pytest.raises(UserError, match="vocab_size=9000 is more than the text allows: set it to"):
        run(replace(config, tokenizer=replace(config.tokenizer, vocab_size=9000)))


def test_corpus_of_other_settings_is_refused(config: Config) -> None:
    with pytest.raises(UserError, match=r"is not prepared .* run `make data`"):
        require_prepared(config)
    run(config)
    require_prepared(config)
    with pytest.raises(UserError, match=r"prepared with tokenizer\.vocab_size=100, not 80: run `make data`"):
        require_prepared(replace(config, tokenizer=replace(config.tokenizer, vocab_size=80)))
    with pytest.raises(UserError, match=r"prepared with data\.max_pieces=40, not 41: "):
        require_prepared(with_data(config, max_pieces=41))


def test_two_files_and_hold_out_make_three_splits(config: Config) -> None:
    held_out = with_data(config, valid=[], test=[], hold_out=0.1)
    run(held_out)
    kept = {split: records(held_out)[f"collect {split}"]["result"] for split in ("train", "valid", "test")}
    assert sum(result["read"] for result in kept.values()) == 303
    assert sum(result["dropped"]["empty"] for result in kept.values()) == 2
    require_prepared(held_out)
    assert run(held_out) == []
    with pytest.raises(UserError, match=r"prepared with data\.hold_out=0\.1, not 0\.2: "):
        require_prepared(with_data(held_out, hold_out=0.2))
    with pytest.raises(UserError, match=r"data\.hold_out=1e-06 takes no pair of the training text for test"):
        run(with_data(held_out, hold_out=1e-6))


def table(path: Path, pairs: Sequence[tuple[str, str]], columns: tuple[str, str] = ("en", "de")) -> str:
    """Write pairs as a Parquet file, and return its name."""
    pyarrow.parquet.write_table(pyarrow.table(dict(zip(columns, zip(*pairs, strict=True), strict=True))), path)
    return str(path)


def test_held_out_text_keeps_what_training_drops(config: Config, tmp_path: Path) -> None:
    pairs = list(zip(text(600, 1), text(600, 2), strict=True))
    pairs += [(f"long {number} " + "ba ken " * 30, "til") for number in range(100)]  # too many words
    pairs += [(f"ken {number}", f"ken {number}") for number in range(100)]  # copies
    pairs += [(f"ver {number}", " ") for number in range(100)]  # no reference
    strict = {"max_words": 20, "max_ratio": 2.0, "drop_copies": True, "deduplicate": True, "max_pieces": 40}
    train = [table(tmp_path / "own.parquet", [*pairs, *pairs[:300]])]
    held_out = with_data(config, train=train, valid=[], test=[], hold_out=0.2, **strict)
    run(held_out)
    for split in ("valid", "test"):
        result, folder = records(held_out)[f"collect {split}"]["result"], held_out.data_folder
        drawn = list(registry.pairs(held_out.data, split))
        whole = [pair for pair in drawn if pair[1].strip()]
        sides = [(folder / f"{split}.{language}").read_text().split("\n")[:-1] for language in ("en", "de")]
        assert list(zip(*sides, strict=True)) == whole
        assert len(PairStore.open(folder, split)) == len(whole)
        assert (result["read"], result["dropped"]["empty"]) == (len(drawn), len(drawn) - len(whole))
        assert any(source.startswith("long") for source, _ in whole)
        assert any(source == target for source, target in whole)
    assert records(held_out)["collect train"]["result"]["dropped"]["words"] > 0
    assert f"left out of test: {records(held_out)['collect test']['result']['dropped']['empty']} pairs" in "\n".join(
        command.summary(read_manifest(held_out.data_folder), held_out)
    )


def test_cells_with_line_breaks_are_one_line_each(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [("one\r\n\r\ntwo", "eins\u2028zwei"), ("three\n", "drei")]
    pairs = [*zip(text(200, 1), text(200, 2), strict=True), *cells]
    train = [table(tmp_path / "own.parquet", pairs, ("src", "tgt"))]
    own = with_data(config, train=train, columns=["src", "tgt"])
    own = with_data(own, valid=own.data.train, test=own.data.train)
    command.run(own)
    for split in ("train", "test"):
        sides = [(own.data_folder / f"{split}.{language}").read_text() for language in ("en", "de")]
        assert [side.splitlines()[-2:] for side in sides] == [["one two", "three"], ["eins zwei", "drei"]]
        assert [len(side.splitlines()) for side in sides] == [202, 202]
        assert records(own)[f"collect {split}"]["result"]["line_breaks"] == 2
    assert "2 sentences of test held line breaks, which became spaces" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"prepared with data\.columns=\[src,tgt\], not \[\]: "):
        require_prepared(with_data(own, columns=[]))


def test_sentences_that_differ_in_line_breaks_stay_in_one_split(tmp_path: Path) -> None:
    pairs = [(f"number{end}{number}", "x") for number in range(300) for end in ("\n", "\r\n", " ", "\u2028")]
    data = DataConfig(source="files", train=[table(tmp_path / "own.parquet", pairs)], valid=[], test=[], hold_out=0.3)
    places: dict[str, set[str]] = {}
    for split in ("train", "valid", "test"):
        for source, _ in registry.pairs(data, split):
            places.setdefault(" ".join(source.split()), set()).add(split)
    assert len(places) == 300
    assert all(len(splits) == 1 for splits in places.values())


def test_command_prints_the_figures_of_the_corpus(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    command.run(config)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("data: ")
    assert "train 300" in lines[0]
    assert "filters dropped 3 of 303 pairs of train: 2 empty, 1 pieces (data.max_pieces=40)" in lines
    command.run(config)
    assert "running again" not in capsys.readouterr().out


def test_killed_worker_process_is_an_error() -> None:
    with pytest.raises(UserError, match=r"ended early, perhaps because memory ran out"):
        run_in_process(os._exit, 7)
    with pytest.raises(ZeroDivisionError):
        run_in_process(divmod, 1, 0)
    assert run_in_process(divmod, 7, 2) == (3, 1)
