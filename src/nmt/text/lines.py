"""Read lines of text from files, pipes, addresses and standard input; write bytes to any of these."""

import gzip
import lzma
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from nmt.config.folders import expanded, is_address
from nmt.errors import UserError
from nmt.storage.remote import local_file, replacing_named

T = TypeVar("T")

MAX_LINE_BYTES = 1 << 20
"""The longest line allowed: a file without line ends is refused before it fills the memory."""
STANDARD = "-"
"""The name that stands for standard input or standard output."""
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
"""What opens compressed files, by the ending that follows the one of the format."""


def read_lines(path: Path) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 text file, which may be .gz or .xz; lines end at \n or \r\n and nowhere else."""
    try:
        with OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            yield from _decoded(file, str(path))
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise UserError(f"{path} is damaged or cut short ({error}): fetch it again.") from error
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}.") from error


def read_input(name: str, key: str = "input") -> Iterator[str]:
    """Yield the lines of a file (plain, .gz or .xz), which may be at an address, of a pipe, or of standard input.

    Errors call the setting `key`.
    """
    if name == STANDARD:
        if not sys.stdin:
            raise UserError("standard input is closed: give it something to read.")
        return _decoded(sys.stdin.buffer, "standard input")
    file = local_file(name, key)
    if not (file.is_file() or is_device(name)):
        raise UserError(f"{key}={name} does not exist or is not a file: name a file, or - for standard input")
    return read_lines(file)


def check_used_once(read: str, written: Sequence[str]) -> None:
    """Refuse to write a file that is the input or another output, too."""
    used = {_place(read)} if read != STANDARD else set[str]()
    for name in written:
        if _place(name) in used:
            raise UserError(f"{name} would be written, but is another output or an input, too: name another file")
        used.update(() if is_device(name) else {_place(name)})


def _place(name: str) -> str:
    """Return the same text for all names of a file."""
    return name if name == STANDARD or is_address(name) else str(expanded(name).resolve())


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
def open_output(name: str) -> Iterator[IO[bytes]]:
    """Open standard output, or a file that appears under its name or at its address only once it is complete.

    A pipe or a device under this name gets the output as it comes.
    """
    if name != STANDARD and not is_device(name):
        with replacing_named(name) as path, path.open("wb") as file:
            yield file
        return
    if name == STANDARD and not sys.stdout:
        raise UserError("standard output is closed: name a file with output=")
    try:
        with nullcontext(sys.stdout.buffer) if name == STANDARD else expanded(name).open("wb") as stream:
            yield stream
    except BrokenPipeError:  # the reader, such as `head`, has all it wants: not an error
        raise
    except OSError as error:
        place = "standard output" if name == STANDARD else name
        raise UserError(f"cannot write {place}: {error.strerror or error}.") from error


def on_one_line(text: str) -> str:
    """Replace the line breaks of a text by spaces."""
    return text.replace("\n", " ")


def blocks(items: Iterable[T], max_items: int, size: Callable[[T], int], max_size: int) -> Iterator[list[T]]:
    """Yield blocks of at most `max_items` items; a block also ends once its sizes add up to `max_size` or more."""
    block: list[T] = []
    block_size = 0
    for item in items:
        block.append(item)
        block_size += size(item)
        if len(block) == max_items or block_size >= max_size:
            yield block
            block, block_size = [], 0
    if block:
        yield block


def _decoded(file: IO[bytes], name: str) -> Iterator[str]:
    for number, raw in enumerate(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), 1):
        if len(raw) > MAX_LINE_BYTES:
            raise UserError(
                f"{name}, line {number}: longer than {MAX_LINE_BYTES:,} bytes, which no sentence is: do its lines end "
                "in \\n? Split or drop it."
            )
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            raise UserError(
                f"{name}, line {number}: not UTF-8 (byte {error.start + 1} of the line): convert it, for example with "
                "`iconv -t UTF-8`, or decompress it unless it is .gz or .xz."
            ) from error
        if number == 1:
            line = line.lstrip("\ufeff")  # a byte order mark
        yield line.removesuffix("\n").rstrip("\r")
