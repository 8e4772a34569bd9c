"""Write files completely or not at all: under a temporary name, synced to the disk, then renamed."""

import ctypes
import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from nmt.errors import UserError
from nmt.storage.lock import take

T = TypeVar("T")

PARTIAL = ".partial"
"""Suffix of temporary names; anything with this suffix that no process holds is unfinished and may be deleted."""
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""Errors of a disk, which name no file if they arise while an open file is written."""
TOKEN_BYTES = 6
"""Random bytes in a temporary name, so that nobody can put something else under it beforehand."""


def replacing(path: Path) -> AbstractContextManager[Path]:
    """Yield a temporary path to write a file to; rename the file to `path` if the block succeeds."""
    return _replacing(path, partial(Path.touch, exist_ok=False))


def replacing_folder(path: Path) -> AbstractContextManager[Path]:
    """Yield a temporary folder to fill; rename it to `path` if the block succeeds."""
    return _replacing(path, Path.mkdir)


@contextmanager
def _replacing(path: Path, create: Callable[[Path], None]) -> Iterator[Path]:
    temporary = _temporary(path)
    with _explaining_disk_errors(path, temporary):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path)
        with _held(temporary, create):
            try:
                yield temporary
                _sync_all(temporary)
                _put(temporary, path)
                sync(path.parent)
            finally:  # after an exchange, what was there before has the temporary name
                with suppress(OSError):
                    shutil.rmtree(temporary) if temporary.is_dir() else temporary.unlink(missing_ok=True)


@contextmanager
def _held(path: Path, create: Callable[[Path], None]) -> Iterator[None]:
    """Create a file or folder, and keep it locked during this block, so that nobody takes it for abandoned.

    Create it again if somebody has removed it before it was locked.
    """
    while True:
        create(path)
        with suppress(FileNotFoundError):
            descriptor = _open(path)
            take(descriptor, fcntl.LOCK_EX)  # waits for somebody who takes it for abandoned
            if path.exists():
                break
            os.close(descriptor)
    try:
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(leftover: Path) -> None:
    """Delete a temporary file or folder, unless a process is writing it."""
    descriptor = None
    with suppress(OSError):  # a link, or what may not be read
        descriptor = _open(leftover, os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if descriptor is None or take(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
            remove(leftover)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _open(path: Path, flags: int = 0) -> int:
    try:
        return os.open(path, os.O_RDWR | flags)  # NFS gives one process alone only what it may write
    except OSError:  # a folder, or what may only be read
        return os.open(path, os.O_RDONLY | flags)


def _sync_all(path: Path) -> None:
    """Wait until a file, or a folder with all that is in it, has reached the disk."""
    if path.is_dir():
        mode = path.stat().st_mode & 0o666  # as the umask says; safetensors lets only the owner read its files
        for file in path.rglob("*"):
            if file.is_file():
                file.chmod(mode)
            sync(file)
    sync(path)


def _put(new: Path, path: Path) -> None:
    """Rename a file or folder to `path`; a folder that was there gets its name, and is back if that fails."""
    if not (new.is_dir() and path.exists()):
        new.replace(path)
    elif not exchange(new, path):
        before = _temporary(path)
        path.replace(before)
        try:
            new.replace(path)
        except OSError:
            before.replace(path)
            raise
        before.replace(new)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two names in one operation, so that neither is ever missing; return whether this system can do that."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):  # not Linux, or an old C library
        return False
    current_folder, exchange_names = -100, 2  # AT_FDCWD and RENAME_EXCHANGE
    failed: int = rename(current_folder, os.fsencode(first), current_folder, os.fsencode(second), exchange_names)
    return failed == 0


def remove_folder(path: Path) -> None:
    """Delete a folder; if killed on the way, leave no part of it under its name."""
    doomed = _temporary(path)
    with _explaining_disk_errors(path, doomed, "delete"):
        path.replace(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


def remove(path: Path) -> None:
    """Delete a file, a link (not its target) or a folder, if there is one."""
    with _explaining_disk_errors(path, path, "delete"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def link(path: Path, target: str) -> None:
    """Make `path` a symbolic link to `target`, a name in the same folder; replace an existing link."""
    temporary = _temporary(path)
    with _explaining_disk_errors(path, temporary):
        _remove_leftovers(path)
        temporary.symlink_to(target)
        temporary.replace(path)


def _temporary(path: Path) -> Path:
    """Return a name beside `path` that nobody can guess; what is there must be created exclusively."""
    return path.with_name(f"{path.name}.{secrets.token_hex(TOKEN_BYTES)}{PARTIAL}")


def _remove_leftovers(path: Path) -> None:
    """Delete the temporary files and folders of `path` that killed processes have left, if they can be deleted."""
    # more than one ending: a temporary folder may be put in its place by way of another
    name = re.compile(rf"{re.escape(path.name)}(\.[0-9a-f]{{{2 * TOKEN_BYTES}}}{re.escape(PARTIAL)})+")
    for leftover in [each for each in path.parent.iterdir() if name.fullmatch(each.name)]:
        with suppress(UserError):
            remove_abandoned(leftover)


@contextmanager
def _explaining_disk_errors(path: Path, temporary: Path, doing: str = "write") -> Iterator[None]:
    """Explain an error of the disk, or one that names these paths or a folder above; any other OSError passes."""
    try:
        yield
    except OSError as error:
        names = [Path(name) for name in (error.filename, error.filename2) if isinstance(name, str | os.PathLike)]
        is_ours = any(name.is_relative_to(temporary) or path.is_relative_to(name) for name in names)
        if error.errno not in WRITE_ERRORS and not is_ours:
            raise
        raise UserError(
            f"cannot {doing} {path}: {error.strerror or error}. Free some space or choose another folder; "
            "what was there before is untouched."
        ) from error


def sync(path: Path) -> None:
    """Wait until a file or a folder has reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a text file, completely or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, completely or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path, remedy: str = "Delete it and run again.") -> Any:
    """Read a JSON file; name it in the error if it is damaged, and what to do then."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise UserError(f"{path} cannot be read as JSON: {error}. {remedy}") from error


def record_of(kind: type[T], content: object) -> T:
    """Return a value read from JSON as a dataclass; raise ValueError if a field is missing or has another type."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - slow to import

    return TypeAdapter(kind).validate_json(json.dumps(content), strict=True)


def is_plain_name(name: str) -> bool:
    """Return whether a name, which may come from an untrusted file, stays inside the folder that it is joined to."""
    return name not in ("", ".", "..") and "/" not in name and name.isprintable()


def seal(content: Any) -> str:
    """Return a checksum of a value as JSON; a file that contains its own seal can be verified."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksums(paths: Sequence[Path]) -> list[str]:
    """Return the checksums of several files, which are read simultaneously."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(checksum, paths))
