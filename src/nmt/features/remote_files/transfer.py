"""Copy files from and to remote file systems: again after an interruption, and whole or not at all."""

import base64
import hashlib
import sys
import time
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from nmt.errors import UserError
from nmt.features.remote_files.remote import BLOCK_BYTES, UNKNOWN_SIZE, Remote, Version, reason
from nmt.storage.files import checksum

T = TypeVar("T")
WAITS = (1.0, 5.0, 20.0, 60.0)
"""Seconds before the second to fifth attempt in a row that fetches nothing."""


class LocalDiskError(OSError):
    """The copy on this machine cannot be written, which fetching again would not change."""


def persist(remote: Remote, action: Callable[[], T], doing: str = "fetch") -> T:
    """Return what an action returns; try again while its errors may pass."""
    for wait in (*WAITS, None):
        try:
            return action()
        except Exception as error:  # of any kind: each file system raises its own
            _wait_or_give_up(remote, error, wait, doing)
    raise AssertionError("the last attempt returns or raises")


def _wait_or_give_up(remote: Remote, error: Exception, wait: float | None, doing: str) -> None:
    """Wait before the next attempt; raise the error for the user if there is none, or if it would fail as well."""
    if final := error if isinstance(error, UserError) else remote.final_error(error, doing):
        raise final from error
    if wait is None:
        raise UserError(
            f"cannot {doing} {remote.address} ({reason(error)}): check the network and run the same command again"
        ) from error
    print(f"{remote.address}: {reason(error)}; trying again in {wait:g} s", file=sys.stderr, flush=True)
    time.sleep(wait)


def download(remote: Remote, version: Version, partial: Path) -> str:
    """Complete a partial copy of a version of a file; return the SHA-256 of its content.

    Raise OSError if the copy cannot be written, and UserError if the file cannot be fetched.
    """
    waits = iter(WAITS)
    with partial.open("ab", buffering=0) as file, _progress(remote, version, file.tell()) as bar:
        while file.tell() != version.size:
            before = file.tell()
            try:
                _append(remote, version, file, bar)
                break
            except LocalDiskError:
                raise
            except Exception as error:  # of any kind: each file system raises its own
                waits = iter(WAITS) if file.tell() > before else waits
                _wait_or_give_up(remote, error, next(waits, None), "fetch")
    if "asked" not in version.marks and persist(remote, remote.version) != version:
        partial.unlink()
        raise UserError(f"{remote.address} changed while it was fetched: run the same command again")
    return _verified(remote, version, partial)


def _progress(remote: Remote, version: Version, done: int) -> "tqdm[Any]":
    total = None if version.size == UNKNOWN_SIZE else version.size
    return tqdm(desc=remote.name, total=total, initial=done, unit="B", unit_scale=True, leave=False, disable=None)


def _append(remote: Remote, version: Version, file: FileIO, bar: "tqdm[Any]") -> None:
    """Append what is missing; begin again if the server cannot begin in the middle."""
    with remote.reading(file.tell(), version.size) as (source, goes_on):
        if not goes_on:
            _empty(file)
        while block := source.read(BLOCK_BYTES):
            _write(file, block)
            bar.update(len(block))
    arrived = file.tell()
    if version.size not in (UNKNOWN_SIZE, arrived):
        if arrived > version.size:
            _empty(file)
        raise OSError(f"{arrived:,} of {version.size:,} bytes arrived")


def _write(file: FileIO, block: bytes) -> None:
    """Write a block to a file without a buffer, which may take only a part of it at a time."""
    rest = memoryview(block)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        raise LocalDiskError(error.errno, error.strerror, file.name) from error


def _empty(file: FileIO) -> None:
    file.seek(0)
    file.truncate()


def _verified(remote: Remote, version: Version, file: Path) -> str:
    """Return the SHA-256 of a file; refuse and remove the file if the server's checksum is another one."""
    sha256 = checksum(file)
    md5 = version.marks.get("md5Hash") or version.marks.get("Content-MD5")
    differs = version.marks.get("sha256", sha256) != sha256
    if differs or (md5 and base64.b64decode(md5).hex() != _md5(file)):
        file.unlink()
        raise UserError(
            f"{remote.address} arrived damaged: its checksum is not the server's; run the same command again"
        )
    return sha256


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def upload(file: Path, remote: Remote) -> None:
    """Write a file to an address; make sure that all of it arrived."""

    def send() -> None:
        if remote.is_on_the_web:
            raise NotImplementedError
        remote.system.put_file(str(file), remote.path)
        arrived, size = remote.version().size, file.stat().st_size
        if arrived not in (UNKNOWN_SIZE, size):
            raise OSError(f"{arrived:,} of {size:,} bytes arrived")

    persist(remote, send, "store")
