"""Inputs and outputs: what can be one, and files that are named twice."""

import io
import os
import sys
from pathlib import Path
from threading import Thread

import pytest

from nmt.errors import UserError
from nmt.text.lines import MAX_LINE_BYTES, check_used_once, open_output, read_input, read_lines


def test_a_pipe_is_an_input_and_a_folder_is_none(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_text("a dog\na cat\n", encoding="utf-8"))
    writer.start()
    assert [*read_input(str(pipe))] == ["a dog", "a cat"]
    writer.join()
    with pytest.raises(UserError, match="does not exist or is not a file"):
        read_input(str(tmp_path))


def test_a_name_that_is_used_twice_is_refused() -> None:
    for read, written in (("-", ["-", "links"]), ("text", ["/dev/null", "/dev/null"])):
        check_used_once(read, written)
    for read, written, message in (
        ("text", ["-", "./folder/../text"], r"^\./folder/\.\./text would be written, but is another output or an"),
        ("-", ["out", "out"], "^out would be written"),
        ("s3://a/text", ["s3://a/text"], "^s3://a/text would be written"),
        ("-", ["-", "-"], "^- would be written"),
    ):
        with pytest.raises(UserError, match=message):
            check_used_once(read, written)


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
    reader = Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    with open_output(str(pipe)) as output:
        output.write(b"eins\n")
    reader.join(60)
    assert received == [b"eins\n"]
    assert pipe.is_fifo()
