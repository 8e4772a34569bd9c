"""Hostile and odd input gives a result or one clear line."""

import io
import json
import os
import sys
import threading
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from nmt import cli
from nmt.config.compose import compose
from nmt.config.saved import from_yaml, read_settings
from nmt.data.manifest import MANIFEST, Task, read_manifest, run_tasks
from nmt.data.store import PairStore, writing
from nmt.errors import ConfigError, UserError
from nmt.storage.files import checksum, seal
from nmt.text.lines import MAX_LINE_BYTES, open_output, read_input, read_lines

BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise("abcdefghijklmn")
)


def test_line_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"short\n" + b"x" * (MAX_LINE_BYTES - 1) + b"\nlast\n")
    assert [len(line) for line in read_lines(path)] == [5, MAX_LINE_BYTES - 1, 4]
    path.write_bytes(b"short\n" + b"x" * (MAX_LINE_BYTES + 1) + b"\nlast\n")
    with pytest.raises(UserError, match="text, line 2: longer than 1,048,576 bytes"):
        list(read_lines(path))


def test_closed_input_and_full_output_are_user_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="standard input is closed"):
        read_input("-")
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(UserError, match="standard output is closed"), open_output("-"):
        pass
    full = io.TextIOWrapper(io.BufferedWriter(io.FileIO("/dev/full", "w")))
    monkeypatch.setattr(sys, "stdout", full)
    with pytest.raises(UserError, match="cannot write standard output: No space left"), open_output("-") as output:
        output.write(b"x" * (1 << 20))


def test_a_pipe_gets_the_output_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    with open_output(str(pipe)) as output:
        output.write(b"eins\n")
    reader.join(60)
    assert received == [b"eins\n"]
    assert pipe.is_fifo()


def test_manifest_cannot_name_files_outside_its_folder(tmp_path: Path) -> None:
    folder, victim = tmp_path / "data", tmp_path / "victim"
    folder.mkdir()
    victim.write_text("stays")
    (folder / "out").write_text("text")
    run_tasks(read_manifest(folder), [Task("step", {}, ["out"], dict)], {}, lambda _: None)
    written = json.loads((folder / MANIFEST).read_text())
    assert {name: asdict(record) for name, record in read_manifest(folder).tasks.items()} == written["steps"]
    forged = json.loads((folder / MANIFEST).read_text())
    forged["steps"]["step"]["outputs"] = {str(victim): ""}
    for content in (forged, forged | {"seal": seal({"steps": forged["steps"]})}, {**forged, "seal": None}):
        (folder / MANIFEST).write_text(json.dumps(content))
        with pytest.raises(UserError, match="is damaged"):
            run_tasks(read_manifest(folder), [], {}, lambda _: None)
    assert victim.read_text() == "stays"
    del written["seal"]
    (folder / MANIFEST).write_text(json.dumps(written))
    with pytest.raises(UserError, match="is damaged"):
        read_manifest(folder)


def test_decreasing_offsets_are_damage_even_with_a_valid_checksum(tmp_path: Path) -> None:
    ids, lengths = np.arange(6, dtype="<u2"), np.array([2, 2, 2], np.int32)
    with writing(tmp_path, "train", ("en", "de"), 60) as writer:
        writer.append(ids, lengths, ids, lengths)
    offsets, described = tmp_path / "train.de.offsets", json.loads((tmp_path / "train.store.json").read_text())
    np.array([0, 4, 2, 6], "<i8").tofile(offsets)
    described["files"][offsets.name]["sha256"] = checksum(offsets)
    (tmp_path / "train.store.json").write_text(json.dumps(described))
    with pytest.raises(UserError, match=r"train\.de\.offsets is missing, damaged"):
        PairStore.open(tmp_path, "train").verify()


@pytest.mark.parametrize(
    "override",
    [
        *(
            "name=../../x",
            "name=/x",
            "name='a\nb'",
            "name='\x1b[2J'",
            f"name={'x' * 300}",
            "data.corpus=..",
            "name=x\0y",
        ),
        *("data.source_lang=../../x", "data.target_lang=''", "data.target_lang=a/b", "evaluation.splits=[../../x]"),
        *("name=\udcff", "input=\udcff", "seed=-1", "seed=99999999999999999999", "data.max_ratio=nan"),
        *("evaluation.splits=[[]]", "data.train=[{a: 1}]", "own.keep=[[a]]"),
    ],
)
def test_unsafe_or_impossible_settings_are_refused(override: str) -> None:
    with pytest.raises(ConfigError):
        compose([override])


@pytest.mark.parametrize(
    "text", ["a: &a [*a]", "model: &a {x: *a}", "[" * 3000, "{a: " * 3000, "seed: " + "9" * 5000, BOMB]
)
def test_saved_settings_that_would_fill_the_memory_are_refused(text: str) -> None:
    for read in (from_yaml, read_settings):
        with pytest.raises(UserError, match=r"alias|nested|not YAML"):
            read(text)


def test_error_is_one_line_even_if_it_quotes_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["data", "name=a\nb\x1b[2J\u2028\udcff"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error[:-1].isprintable()
