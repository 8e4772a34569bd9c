"""Read lines from a file or standard input; write bytes to a file or standard output."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from nmt.config.folders import expanded, is_address
from nmt.errors import UserError
from nmt.storage.remote import local_file, replacing_named
from nmt.text.lines import read_lines, read_stream

STANDARD = "-"
"""The name that stands for standard input or standard output."""


def read_input(name: str, key: str = "input") -> Iterator[str]:
    """Yield the lines of a file (plain, .gz or .xz), which may be at an address, of a pipe, or of standard input.

    Errors call the setting `key`.
    """
    if name == STANDARD:
        return read_stream(sys.stdin.buffer if sys.stdin else None, "standard input")
    file = local_file(name, key)
    if not (file.is_file() or is_device(name)):
        raise UserError(f"{key}={name} does not exist or is not a file: name a file, or - for standard input")
    return read_lines(file)


def check_used_once(read: Sequence[str], written: Sequence[str]) -> None:
    """Refuse a file that is written and is another output or an input, too, and a standard stream used twice."""
    if read.count(STANDARD) > 1:
        raise UserError("standard input would be read twice: name a file for all but one input")
    if written.count(STANDARD) > 1:
        raise UserError("two outputs would be mixed on standard output: name a file for all but one")
    files = [name for name in written if name != STANDARD and not is_device(name)]
    places = Counter(_place(name) for name in (*read, *files) if name != STANDARD)
    if used := next((name for name in files if places[_place(name)] > 1), None):
        raise UserError(f"{used} would be written, but is another output or an input, too: name another file")


def _place(name: str) -> str:
    """Return the same text for all names of a file."""
    return name if is_address(name) else str(expanded(name).resolve())


def is_interactive(name: str) -> bool:
    """Return whether the input is typed at a terminal."""
    return name == STANDARD and bool(sys.stdin) and sys.stdin.isatty()


def is_device(name: str) -> bool:
    """Return whether something is at a path that is neither a file nor a folder: a pipe, or a device."""
    if is_address(name):
        return False
    path = expanded(name)
    return path.exists() and not (path.is_file() or path.is_dir())


@contextmanager
def open_output(name: str) -> Iterator[BinaryIO]:
    """Open standard output, or a file that appears under its name or at its address only once it is complete.

    A pipe or a device under this name gets the output as it comes.
    """
    if name == STANDARD:
        if not sys.stdout:
            raise UserError("standard output is closed: name a file with output=")
        with _explaining_write_errors("standard output"):
            yield sys.stdout.buffer
        return
    if is_device(name):
        with _explaining_write_errors(name), expanded(name).open("wb") as file:
            yield file
        return
    with replacing_named(name, "output") as partial, partial.open("wb") as file:
        yield file


@contextmanager
def _explaining_write_errors(name: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # the reader, such as `head`, has all it wants: not an error
        raise
    except OSError as error:
        raise UserError(f"cannot write {name}: {error.strerror or error}.") from error
