"""Locks on files and folders, which end with the process that holds them, however that ends."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from nmt.errors import UserError

LOCK = ".lock"


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
) -> Iterator[Callable[[], object]]:
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
        if not take(lock, fcntl.LOCK_EX | fcntl.LOCK_NB):
            if wait is None:
                raise UserError(f"{folder} {taken}")
            wait(f"{folder} {taken}")
            take(lock, fcntl.LOCK_EX)
        yield partial(take, lock, fcntl.LOCK_SH)


@contextmanager
def folder_in_use(folder: Path) -> Iterator[None]:
    """Keep others from locking a folder exclusively during this block; any number of processes may do so together."""
    with (folder / LOCK).open("a+") as lock:  # some file systems share only what may be read
        take(lock, fcntl.LOCK_SH)
        yield


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
        descriptor = _open(path)
    except FileNotFoundError:
        return None
    take(descriptor, fcntl.LOCK_EX)  # waits for somebody who takes it for abandoned
    if path.exists():
        return descriptor
    os.close(descriptor)
    return None


def _open(path: Path, flags: int = 0) -> int:
    try:
        return os.open(path, os.O_RDWR | flags)  # NFS gives one process alone only what it may write
    except OSError:  # a folder, or what may only be read
        return os.open(path, os.O_RDONLY | flags)


@contextmanager
def unheld(path: Path) -> Iterator[bool]:
    """Yield whether nobody holds a file or folder; if so, nobody can hold it during this block."""
    try:
        descriptor = _open(path, os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # a link, or what may not be read
        descriptor = None
    try:
        yield descriptor is None or take(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        if descriptor is not None:
            os.close(descriptor)
