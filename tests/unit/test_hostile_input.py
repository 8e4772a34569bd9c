"""Hostile and odd input gives a result or one clear line."""

import io
import os
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from nmt import cli
from nmt.config.compose import compose
from nmt.config.saved import from_yaml, read_settings
from nmt.errors import ConfigError, UserError
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
