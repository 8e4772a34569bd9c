"""Folders that one process works in at a time; the lock goes with the process, however that ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from nmt.errors import UserError

LOCK = ".lock"


@contextmanager
def exclusive_folder(folder: Path, *, taken: str, setting: str) -> Iterator[None]:
    """Work alone in a folder, which is made where needed.

    Args:
        folder: Where to work.
        taken: What to say of the folder when another process works in it, and what to do then.
        setting: The setting that names another folder, where this one cannot be written to.
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
            raise UserError(f"{folder} {taken}")
        yield


def _is_held(lock: TextIO) -> bool:
    """Whether another process holds a lock; else it is ours now."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # this file system knows no locks: better none than no work
        return False
    return False
