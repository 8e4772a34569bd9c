"""Exchange the names of two files or folders in one operation, so that neither name is ever missing."""

import ctypes
import os
from pathlib import Path

CURRENT_FOLDER, EXCHANGE = -100, 2
"""AT_FDCWD and RENAME_EXCHANGE of Linux."""


def exchange(first: Path, second: Path) -> bool:
    """Exchange two names of the same file system; return whether this system can do that, and did."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):  # not Linux, or an old C library
        return False
    failed: int = rename(CURRENT_FOLDER, os.fsencode(first), CURRENT_FOLDER, os.fsencode(second), EXCHANGE)
    return failed == 0
