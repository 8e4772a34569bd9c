"""Lines in from a file or standard input, bytes out to a file or standard output."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from nmt.data.sources.files import read_lines, read_stream
from nmt.errors import UserError
from nmt.storage.files import replacing

STANDARD = "-"
"""Standard input, or output."""


def read_input(name: str, key: str = "input") -> Iterator[str]:
    """Lines of a file (plain, .gz or .xz) or of standard input; `key` is the setting that names it."""
    if name == STANDARD:
        return read_stream(sys.stdin.buffer if sys.stdin else None, "standard input")
    if not Path(name).is_file():
        raise UserError(f"{key}={name} does not exist or is not a file: name a file, or - for standard input")
    return read_lines(Path(name))


@contextmanager
def open_output(name: str) -> Iterator[BinaryIO]:
    """A file, put in its place once it is whole, or standard output."""
    if name == STANDARD:
        if not sys.stdout:
            raise UserError("standard output is closed: name a file with output=")
        with _explaining_output():
            yield sys.stdout.buffer
        return
    with replacing(Path(name)) as partial, partial.open("wb") as file:
        yield file


@contextmanager
def _explaining_output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # whoever read it has left, which is no error
        raise
    except OSError as error:
        raise UserError(f"cannot write standard output: {error.strerror or error}.") from error
