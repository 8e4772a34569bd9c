"""Inputs and outputs: what can be one, and files that are named twice."""

import os
from pathlib import Path
from threading import Thread

import pytest

from nmt.errors import UserError
from nmt.text.lines import check_used_once, read_input


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
