"""Write files completely or not at all: under a temporary name, synced to the disk, then renamed."""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from nmt.errors import UserError
from nmt.storage.exchange import exchange
from nmt.storage.lock import held, unheld

T = TypeVar("T")

PARTIAL = ".partial"
"""Suffix of temporary names; anything with this suffix that no process holds is unfinished and may be deleted."""
WRITE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
"""Errors of a disk, which name no file if they arise while an open file is written."""
TOKEN_BYTES = 6
"""Random bytes in a temporary name, so that nobody can put something else under it beforehand."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write a file to; rename the file to `path` if the block succeeds."""
    partial = _temporary(path)
    with ExitStack() as after:
        with _explaining_disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(path)
            after.enter_context(held(partial, lambda: _create(partial)))
            after.callback(remove, partial)
        with _explaining_write_errors(path, partial):
            yield partial
        with _explaining_disk_errors(path):
            sync(partial)
            partial.replace(path)
            sync(path.parent)


def _create(path: Path) -> None:
    """Create a file where there must be nothing."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666))


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill; rename it to `path` if the block succeeds."""
    partial = _temporary(path)
    with ExitStack() as after:
        with _explaining_disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_leftovers(path)
            after.enter_context(held(partial, partial.mkdir))
            after.callback(shutil.rmtree, partial, ignore_errors=True)
        with _explaining_write_errors(path, partial):
            yield partial
        with _explaining_disk_errors(path):
            _sync_folder(partial)
            _put(partial, path)
            sync(path.parent)


def _sync_folder(folder: Path) -> None:
    """Give the files below a folder the permissions of any new file, and wait until all has reached the disk."""
    mode = folder.stat().st_mode & 0o666  # as the umask says; safetensors lets only the owner read its files
    for file in folder.rglob("*"):
        if file.is_file():
            file.chmod(mode)
        sync(file)
    sync(folder)


def _put(folder: Path, path: Path) -> None:
    """Rename a folder to `path`; what was there gets the folder's name, and is back if that fails."""
    if not path.exists():
        folder.replace(path)
    elif not exchange(folder, path):
        before = _temporary(path)
        path.replace(before)
        try:
            folder.replace(path)
        except OSError:
            before.replace(path)
            raise
        before.replace(folder)


def remove_folder(path: Path) -> None:
    """Delete a folder; if killed on the way, leave no part of it under its name."""
    doomed = _temporary(path)
    with _explaining_disk_errors(path):
        path.replace(doomed)
        shutil.rmtree(doomed, ignore_errors=True)


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


def remove_abandoned(leftover: Path) -> None:
    """Delete a temporary file or folder, unless a process is writing it."""
    with unheld(leftover) as is_abandoned:
        if is_abandoned:
            remove(leftover)


def remove(path: Path) -> None:
    """Delete a file, a link (not its target) or a folder, if there is one."""
    with _explaining_disk_errors(path, "delete"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def _explaining_disk_errors(path: Path, doing: str = "write") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _disk_error(path, doing, error) from error


@contextmanager
def _explaining_write_errors(path: Path, partial: Path) -> Iterator[None]:
    """Explain a failure to write `partial`; any other OSError belongs to what the block does besides and passes."""
    try:
        yield
    except OSError as error:
        names = (str(name) for name in (error.filename, error.filename2) if name is not None)
        if error.errno not in WRITE_ERRORS and not any(Path(name).is_relative_to(partial) for name in names):
            raise
        raise _disk_error(path, "write", error) from error


def _disk_error(path: Path, doing: str, error: OSError) -> UserError:
    return UserError(
        f"cannot {doing} {path}: {error.strerror or error}. Free some space or choose another folder; "
        "what was there before is untouched."
    )


def sync(path: Path) -> None:
    """Wait until a file or a folder has reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(path: Path, text: str) -> None:
    """Write a text file, completely or not at all."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


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


def link(path: Path, target: str) -> None:
    """Make `path` a symbolic link to `target`, a name in the same folder; replace an existing link."""
    partial = _temporary(path)
    with _explaining_disk_errors(path):
        _remove_leftovers(path)
        partial.symlink_to(target)
        partial.replace(path)
