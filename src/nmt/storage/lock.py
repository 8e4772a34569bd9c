"""Locks on files and folders, which end with the process that holds them, however that ends."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from nmt.errors import UserError

LOCK = ".lock"


@contextmanager
def exclusive_folder(
    folder: Path, *, taken: str, setting: str, wait: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Lock a folder during this block; create it if it does not exist.

    Args:
        folder: The folder.
        taken: The rest of the message, after the folder's name, if another process holds the lock.
        setting: The setting to change if the folder is not writable.
        wait: Takes this message before waiting for the other process. Without it, the message is an error.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a")
    except OSError as error:
        raise UserError(
            f"cannot write to {folder}: {error.strerror or error}. Choose another with {setting}."
        ) from error
    with lock:
        if _is_held(lock):
            if wait is None:
                raise UserError(f"{folder} {taken}")
            wait(f"{folder} {taken}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def folder_in_use(folder: Path) -> Iterator[None]:
    """Keep others from locking a folder exclusively during this block; any number of processes may do so together."""
    with (folder / LOCK).open("a") as lock:
        with suppress(OSError):  # this file system has no locks
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Lock a new file or folder during this block, also if it is renamed meanwhile."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _is_held(descriptor)
        yield
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Return whether somebody holds the lock of a file or folder."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return _is_held(descriptor)
    finally:
        os.close(descriptor)


def _is_held(lock: IO[str] | int) -> bool:
    """Return whether another opened file holds the lock; otherwise take it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # this file system has no locks: better to work without one than not at all
        return False
    return False
