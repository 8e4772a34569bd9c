"""Locks on files and folders, which end with the process that holds them, however that ends."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

from nmt.errors import UserError

LOCK = ".lock"


@contextmanager
def exclusive_folder(
    folder: Path, *, taken: str, setting: str, wait: Callable[[str], None] | None = None
) -> Iterator[Callable[[], None]]:
    """Lock a folder during this block; create it if it does not exist.

    Yield a function that lets others use the folder together with this process (`folder_in_use`), but not alone.

    Args:
        folder: The folder.
        taken: The rest of the message, after the folder's name, if another process holds the lock.
        setting: The setting to change if the folder is not writable.
        wait: Takes this message before waiting for the other process. Without it, the message is an error.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("a+")
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
        yield partial(_share, lock)


@contextmanager
def folder_in_use(folder: Path) -> Iterator[None]:
    """Keep others from locking a folder exclusively during this block; any number of processes may do so together."""
    with (folder / LOCK).open("a+") as lock:  # some file systems share only what may be read
        _share(lock)
        yield


def _share(lock: IO[str]) -> None:
    with suppress(OSError):  # this file system has no locks
        fcntl.flock(lock, fcntl.LOCK_SH)


@contextmanager
def held(path: Path, create: Callable[[], object]) -> Iterator[None]:
    """Create a file or folder, and keep it locked during this block, also if it is renamed meanwhile.

    Create it again if somebody has removed it before it was locked.
    """
    descriptor = None
    while descriptor is None:
        create()
        descriptor = _locked(path)
    try:
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path) -> int | None:
    """Return the opened file or folder with its lock; None if it is not there any more."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with suppress(OSError):  # this file system has no locks, or none of what is only read
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # waits for somebody who looks whether it is held
    if path.exists():
        return descriptor
    os.close(descriptor)
    return None


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
