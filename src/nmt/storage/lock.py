"""Let only one process at a time work in a folder; the lock ends with the process, however that ends."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

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


def _is_held(lock: TextIO) -> bool:
    """Return whether another process holds the lock; otherwise take it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # this file system has no locks: better to work without one than not at all
        return False
    return False
