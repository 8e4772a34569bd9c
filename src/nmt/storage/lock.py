"""Locks on files and folders, which end with the process that holds them, however that ends.

They are `flock`'s own: `filelock` cannot lock a folder, and on a file system without locks it uses files, which a
killed process leaves behind.
"""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
