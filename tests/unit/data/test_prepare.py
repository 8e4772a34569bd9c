"""Preparation from text to ids: each task runs once, runs again when its inputs change, and survives interruption."""

import fcntl
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from nmt.commands import data as command
from nmt.compute.processes import run_in_process
from nmt.config.data import DataConfig
from nmt.config.tree import Config, PathsConfig, RuntimeConfig
from nmt.data import encode, make_tokenizer, prepare
from nmt.data.filters import pipeline
from nmt.data.manifest import MANIFEST, Task, read_manifest, run_tasks
from nmt.data.prepared import require_prepared
from nmt.data.sources import registry
from nmt.data.store import SIDES, PairStore
from nmt.errors import UserError
from nmt.storage.files import checksum
from nmt.text.tokenizer import Tokenizer
from tests.unit.data.corpus import KilledError, append, killed, run, table, text, with_data, with_tokenizer

COLLECTED = ["collect test", "collect valid", "collect train", "overlap"]
ENCODED = ["encode test", "encode valid", "encode train"]
ALL = [*COLLECTED, "tokenizer", *ENCODED]


def content(config: Config) -> dict[str, str]:
    """Return the checksums of all the prepared files except the manifest, which holds times."""
    return {path.name: checksum(path) for path in config.data_folder.iterdir() if path.name != MANIFEST}


def lines_of(config: Config, split: str) -> list[list[str]]:
    """Return the prepared lines of both sides of a split."""
    return [(config.data_folder / f"{split}.{each}").read_text().split("\n")[:-1] for each in ("en", "de")]


def test_text_and_ids_agree_with_the_source_and_the_record(config: Config) -> None:
    assert run(config) == ALL
    folder, manifest = config.data_folder, read_manifest(config.data_folder)
    tokenizer = Tokenizer.load(folder)
    assert [(folder / f"test.{each}").read_bytes() for each in ("en", "de")] == [
        Path(raw).read_bytes() for raw in config.data.test
    ]
    for split, pairs in (("train", 300), ("valid", 23), ("test", 23)):
        store = PairStore.open(folder, split)
        store.verify()
        sides = lines_of(config, split)
        expected = list(zip(tokenizer.encode_source(sides[0]), tokenizer.encode_target(sides[1]), strict=True))
        if split == "train":
            expected = [pair for pair in expected if max(map(len, pair)) <= 40]
        assert [(store.source(i).tolist(), store.target(i).tolist()) for i in range(len(store))] == expected
        found = manifest.encoded(split)
        assert (len(store), found.pairs, found.dropped) == (pairs, pairs, {"pieces": int(split == "train")})
        assert [found.source.tokens, found.target.tokens] == [int(store.lengths(side).sum()) for side in SIDES]
    collected = manifest.collected("train")
    dropped = {"empty": 2, "control characters": 0, "words": 0}
    assert (collected.read, collected.kept, collected.dropped) == (303, 301, dropped)
    for record in manifest.tasks.values():
        assert record.outputs == {name: checksum(folder / name) for name in record.outputs}


def test_second_run_without_changes_does_nothing(config: Config) -> None:
    run(config)
    before = {path: path.stat().st_mtime_ns for path in config.data_folder.iterdir()}
    for raw in config.data.train:
        os.utime(raw, (1, 1))
    assert run(config) == []
    assert {path: path.stat().st_mtime_ns for path in config.data_folder.iterdir()} == before


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda c: with_tokenizer(c, vocab_size=90), ["tokenizer", *ENCODED]),
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
    assert run(change(config)) == expected
    assert run(change(config)) == []


def test_changed_text_runs_dependent_tasks_again(config: Config) -> None:
    run(config)
    before, file = Path(config.data.test[0]).stat(), Path(config.data.test[0])
    file.write_text(file.read_text().swapcase())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run(config) == ["collect test", "overlap", "encode test"]
    for raw in config.data.train:
        append(raw, "new\n")
    assert run(config) == ["collect train", "overlap", "tokenizer", *ENCODED]


def test_damaged_outputs_are_written_again(config: Config) -> None:
    run(config)
    before, folder = content(config), config.data_folder
    for name in ("train.en", "valid.de.tokens"):
        (folder / name).unlink()
    for name in ("tokenizer.model", "train.store.json"):
        whole = bytearray((folder / name).read_bytes())
        whole[len(whole) // 2] ^= 1
        (folder / name).write_bytes(whole)
    said: list[str] = []
    prepare.prepare(config, said.append)
    reasons = [
        "collect train: running again: train.en is missing or damaged",
        "tokenizer: running again: tokenizer.model is missing or damaged",
    ]
    reasons += ["encode valid: running again: valid.de.tokens is missing or damaged"]
    assert [line for line in said if "again" in line] == [
        *reasons,
        "encode train: running again: train.store.json is missing or damaged",
    ]
    assert content(config) == before


@pytest.mark.parametrize("write", range(1, 30, 9))
def test_interrupted_run_resumes_to_the_same_corpus(
    config: Config, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    """Stop at the n-th rename; the next run gives the same corpus as an uninterrupted one."""
    whole = with_data(config, corpus="whole")
    run(whole)
    left, rename = write, Path.replace

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


def test_no_file_of_earlier_settings_stays_if_a_run_is_killed(tmp_path: Path) -> None:
    def run_task(outputs: list[str], say: Callable[[str], None] = lambda _: None) -> None:
        task = Task("task", {}, outputs, lambda: {name: (tmp_path / name).write_text("text") for name in outputs})
        run_tasks(read_manifest(tmp_path), [task], {}, lambda line: say(line) if "done" in line else None)

    run_task(["source.model", "target.model"])
    with pytest.raises(KilledError):
        run_task(["joint.model"], killed)
    run_task(["joint.model"])
    assert [path.name for path in tmp_path.glob("*.model")] == ["joint.model"]


def test_corpus_does_not_depend_on_processes_and_chunks(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    run(config)
    monkeypatch.setattr(encode, "CHUNK_PAIRS", 40)
    monkeypatch.setattr(pipeline, "CHUNK_PAIRS", 70)
    monkeypatch.setattr(make_tokenizer, "run_in_process", run_in_process)
    several = with_data(replace(config, runtime=RuntimeConfig(workers=2)), corpus="several")
    run(several)
    assert content(several) == content(config)


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


HELD_OUT: dict[str, Any] = {"valid": [], "test": [], "hold_out": 0.1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: Path(c.data.train[0]).unlink(), r"train\.en does not exist"),
        (lambda c: append(c.data.train[1], "one more\n"), r"has 303 sentences, but .* has more"),
        (lambda c: with_data(c, max_words=1), r"train has no pairs: of 303 read, .*words 301"),
        (lambda c: with_data(c, max_pieces=2), "no pair of train has 2 pieces or fewer"),
        (
            lambda c: with_data(c, **HELD_OUT | {"hold_out": 1e-6}),
            "test has no pairs: .* data.hold_out",
        ),
        (lambda c: with_tokenizer(c, vocab_size=9000), "vocab_size=9000 is more than the text allows: set it to"),
        (lambda c: replace(c, paths=PathsConfig(data=c.data.train[0])), r"cannot write to .*: Not a dir.* paths\.data"),
    ],
)
def test_mistakes_are_one_line(config: Config, change: Callable[[Config], object], message: str) -> None:
    changed = change(config)
    with pytest.raises(UserError, match=message) as error:
        run(changed if isinstance(changed, Config) else config)
    assert "\n" not in str(error.value)
    assert not list(config.data_folder.glob("*.partial"))


def test_held_out_text_keeps_what_training_drops(config: Config, tmp_path: Path) -> None:
    pairs = list(zip(text(600, 1), text(600, 2), strict=True))
    pairs += [(f"long {number} " + "ba ken " * 30, "til") for number in range(100)]  # too many words
    pairs += [(f"ken {number}", f"ken {number}") for number in range(100)]  # copies
    pairs += [(f"ver {number}", " ") for number in range(100)]  # no reference
    strict = {"max_words": 20, "max_ratio": 2.0, "drop_copies": True, "deduplicate": True}
    train = [table(tmp_path / "own.parquet", [*pairs, *pairs[:300]])]
    held_out = with_data(config, train=train, **HELD_OUT | {"hold_out": 0.2}, **strict)
    run(held_out)
    manifest = read_manifest(held_out.data_folder)
    assert sum(manifest.collected(split).read for split in ("train", "valid", "test")) == len(pairs) + 300
    for split in ("valid", "test"):
        drawn = list(registry.pairs(held_out.data, split))
        whole = [pair for pair in drawn if pair[1].strip()]
        assert list(zip(*lines_of(held_out, split), strict=True)) == whole
        assert len(PairStore.open(held_out.data_folder, split)) == len(whole)
        assert manifest.collected(split).dropped["empty"] == len(drawn) - len(whole)
        assert any(source.startswith("long") for source, _ in whole)
        assert any(source == target for source, target in whole)
    assert manifest.collected("train").dropped["words"] > 0
    left_out = f" pairs of test: {manifest.collected('test').dropped['empty']} empty"
    assert left_out in "\n".join(command.summary(manifest, held_out))
    with pytest.raises(UserError, match=r"prepared with data\.hold_out=0\.2, not 0\.3: "):
        require_prepared(with_data(held_out, hold_out=0.3))


def test_cells_with_line_breaks_are_one_line_each(
    config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [("one\r\n\r\ntwo", "eins\u2028zwei"), ("three\n", "drei")]
    pairs = [*zip(text(200, 1), text(200, 2), strict=True), *cells]
    train = [table(tmp_path / "own.parquet", pairs, ("src", "tgt"))]
    own = with_data(config, train=train, valid=train, test=train, columns=["src", "tgt"])
    command.run(own)
    for split in ("train", "test"):
        sides = lines_of(own, split)
        assert [side[-2:] for side in sides] == [["one two", "three"], ["eins zwei", "drei"]]
        assert [len(side) for side in sides] == [202, 202]
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("data: test 202, valid 202, train 202 pairs in ")


def test_sentences_that_differ_in_line_breaks_stay_in_one_split(tmp_path: Path) -> None:
    pairs = [(f"number{end}{number}", "x") for number in range(300) for end in ("\n", "\r\n", " ", "\u2028")]
    data = DataConfig(source="files", train=[table(tmp_path / "own.parquet", pairs)], valid=[], test=[], hold_out=0.3)
    places: dict[str, set[str]] = {}
    for split in ("train", "valid", "test"):
        for source, *_ in registry.pairs(data, split):
            places.setdefault(" ".join(source.split()), set()).add(split)
    assert len(places) == 300
    assert all(len(splits) == 1 for splits in places.values())
