"""Inputs and outputs: what can be one, and files that are named twice."""

import os
from pathlib import Path
from threading import Thread

import pytest

from nmt.errors import UserError
from nmt.text.lines import check_used_once, read_input


def test_a_pipe_and_a_device_are_inputs(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_text("a dog\na cat\n", encoding="utf-8"))
    writer.start()
    assert [*read_input(str(pipe))] == ["a dog", "a cat"]
    writer.join()
    assert [*read_input("/dev/null")] == []


def test_a_folder_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist or is not a file"):
        [*read_input(str(tmp_path))]


@pytest.mark.parametrize(
    ("read", "written", "message"),
    [
        (["text", "-"], ["-", "links"], ""),
        (["text", "text"], ["/dev/null", "/dev/null"], ""),
        (["s3://a/text"], ["s3://a/other"], ""),
        (["text"], ["text"], "^text would be written, but is another output or an input, too: name another file"),
        (["text"], ["-", "./folder/../text"], r"^\./folder/\.\./text would be written"),
        (["-"], ["out", "out"], "^out would be written"),
        (["s3://a/text"], ["s3://a/text"], "^s3://a/text would be written"),
        (["-", "-"], ["out"], "^standard input would be read twice"),
        (["-"], ["-", "-"], "^two outputs would be mixed on standard output"),
    ],
)
def test_a_name_that_is_used_twice_is_refused(read: list[str], written: list[str], message: str) -> None:
    if message:
        with pytest.raises(UserError, match=message):
            check_used_once(read, written)
    else:
        check_used_once(read, written)
