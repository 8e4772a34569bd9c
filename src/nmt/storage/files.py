"""Write files completely or not at all: under a temporary name, synced to the disk, then renamed; and lock them.

Locks are `flock`'s own, which end with the process that holds them, however that ends: `filelock` cannot lock a folder,
and on a file system without locks it uses files, which a killed process leaves behind.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from nmt.errors import UserError

T = TypeVar("T")

PARTIAL = ".partial"
"""Suffix of temporary names. What has one is unfinished: the next writer of that name deletes it."""
LOCK = ".lock"
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""Errors of a disk, which name no file if they arise while an open file is written."""


@contextmanager
def replacing(path: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """Yield a temporary path to write a file to, or a temporary folder; rename it to `path` if the block succeeds."""
    temporary = _temporary(path)
    before = _temporary(temporary)
    with _explaining_disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(temporary):
            with _locked(temporary):
                remove(temporary)  # left by a killed process
        temporary.mkdir() if is_folder else temporary.touch(exist_ok=False)
        with _locked(temporary):
            try:
                yield temporary
                _sync_all(temporary)
                remove(before)
                if is_folder and path.is_dir():
                    path.replace(before)
                try:
                    temporary.replace(path)
                except OSError:
                    if before.exists():
                        before.replace(path)
                    raise
                remove(before)
                sync(path.parent)
            finally:
                with suppress(UserError):
                    remove(temporary)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if not take(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
            raise UserError(f"{path} is being written by another process: wait until it is done")
        yield
    finally:
        os.close(descriptor)


def _sync_all(path: Path) -> None:
    """Wait until a file, or a folder with all that is in it, has reached the disk."""
    if path.is_dir():
        mode = path.stat().st_mode & 0o666  # as the umask says; safetensors lets only the owner read its files
        for file in path.rglob("*"):
            if file.is_file():
                file.chmod(mode)
            sync(file)
    sync(path)


def sync(path: Path) -> None:
    """Wait until a file or a folder has reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Delete a file, a link (not its target) or a folder, if there is one; no part of a folder stays under its name."""
    with _explaining_disk_errors(path, "delete"):
        if path.is_dir() and not path.is_symlink():
            doomed = _temporary(path)
            shutil.rmtree(doomed, ignore_errors=True)
            path.replace(doomed)
            shutil.rmtree(doomed)
        else:
            path.unlink(missing_ok=True)


def link(path: Path, target: str) -> None:
    """Make `path` a symbolic link to `target`, a name in the same folder; replace what is there."""
    temporary = _temporary(path)
    remove(temporary)
    if path.is_dir() and not path.is_symlink():  # as copied by `scp -r`, which follows links
        remove(path)
    with _explaining_disk_errors(path):
        temporary.symlink_to(target)
        temporary.replace(path)


def _temporary(path: Path) -> Path:
    return path.with_name(path.name + PARTIAL)


@contextmanager
def _explaining_disk_errors(path: Path, doing: str = "write") -> Iterator[None]:
    """Explain an error of the disk, or one that names this path, its temporary one or a folder above; others pass."""
    try:
        yield
    except OSError as error:
        names = [Path(name) for name in (error.filename, error.filename2) if isinstance(name, str | os.PathLike)]
        is_ours = any(name.is_relative_to(_temporary(path)) or path.is_relative_to(name) for name in names)
        if error.errno not in WRITE_ERRORS and not is_ours:
            raise
        raise UserError(
            f"cannot {doing} {path}: {error.strerror or error}. Free some space or choose another folder; "
            "what was there before is untouched."
        ) from error


def take(opened: IO[Any] | int, operation: int) -> bool:
    """Do an operation of `fcntl.flock` with an opened file; return whether nobody else's lock prevents it."""
    try:
        fcntl.flock(opened, operation)
    except BlockingIOError:
        return False
    except OSError:  # this file system has no such locks: better to work without one than not at all
        return True
    return True


@contextmanager
def exclusive_folder(
    folder: Path, *, taken: str, setting: str, wait: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Lock a folder during this block; create it if it does not exist.

    If another process holds the lock, raise an error with the message `taken` after the folder's name, or pass the
    message to `wait` and wait. `setting` names the folder in the error if it is not writable.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a+")
    except OSError as error:
        raise UserError(
            f"cannot write to {folder}: {error.strerror or error}. Choose another with {setting}."
        ) from error
    with lock:
        if not take(lock, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if wait is None:
                raise UserError(f"{folder} {taken}")
            wait(f"{folder} {taken}")
            take(lock, fcntl.LOCK_EX)
        yield


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
