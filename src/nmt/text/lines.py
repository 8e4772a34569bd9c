"""Read lines of text: from plain, .gz or .xz files, or from a stream that is already open."""

import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from nmt.errors import UserError

MAX_LINE_BYTES = 1 << 20
"""The longest line allowed: a file without line ends is refused before it fills the memory."""

COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}
"""The first bytes of compressed files."""
ReadableFile = BinaryIO | BufferedReader | gzip.GzipFile | lzma.LZMAFile


def read_lines(path: Path) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 text file; lines end at \n or \r\n and nowhere else."""
    with _explaining_read_errors(str(path)), _open(path) as file:
        yield from _decoded(file, str(path))


def read_stream(file: BinaryIO | None, name: str) -> Iterator[str]:
    """Yield lines of text from an open stream such as standard input; errors call it `name`."""
    if file is None:
        raise UserError(f"{name} is closed: give it something to read.")
    with _explaining_read_errors(name):
        yield from _decoded(file, name)


def on_one_line(text: str) -> str:
    """Replace the line breaks of a text by spaces."""
    return text.replace("\n", " ")


def line_too_long(where: str) -> UserError:
    """Return the error for a line of more than MAX_LINE_BYTES bytes; `where` names the file and the line."""
    return UserError(
        f"{where}: longer than {MAX_LINE_BYTES:,} bytes, which no sentence is: do its lines end in \\n? "
        "Split or drop it."
    )


def _decoded(file: ReadableFile, name: str) -> Iterator[str]:
    for number, raw in enumerate(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), 1):
        if len(raw) > MAX_LINE_BYTES:
            raise line_too_long(f"{name}, line {number}")
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            if number == 1 and (kind := next((COMPRESSED[start] for start in COMPRESSED if raw.startswith(start)), "")):
                raise UserError(f"{name} is compressed by {kind}: decompress it, or use .gz or .xz.") from error
            raise UserError(
                f"{name}, line {number}: not UTF-8 (byte {error.start + 1} of the line): convert it, "
                "for example with `iconv -t UTF-8`."
            ) from error
        if number == 1:
            line = line.lstrip("\ufeff")  # a byte order mark
        yield line.removesuffix("\n").rstrip("\r")


def _open(path: Path) -> BufferedReader | gzip.GzipFile | lzma.LZMAFile:
    ending = path.suffix.lower()
    if ending == ".gz":
        return gzip.open(path, "rb")
    if ending == ".xz":
        return lzma.open(path, "rb")
    return path.open("rb")


@contextmanager
def _explaining_read_errors(name: str) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise UserError(f"{name} is damaged or cut short ({error}): fetch it again.") from error
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror or error}.") from error
