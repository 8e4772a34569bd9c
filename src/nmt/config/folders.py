"""Folders that may be elsewhere: an address such as s3://bucket/runs stands for a local copy of what is there."""

import os
import re
from hashlib import sha256
from pathlib import Path

from nmt.errors import UserError

CACHE = "NMT_CACHE"
"""Environment variable that names the folder of all copies of what is at addresses."""
KEY_CHARACTERS = 12


def is_address(name: str) -> bool:
    """Return whether a name is an address rather than a path."""
    return bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name))


def expanded(name: str | Path) -> Path:
    """Return a path with the home in place of ~; refuse an address."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:(/|$)", str(name)):  # one slash, because a Path has no more of it
        raise UserError(f"{name} is an address: name a local file or folder, or write ./{name} if it is one")
    return Path(os.path.expanduser(name))  # noqa: PTH111 - Path raises an error if there is no such user


def cache_folder() -> Path:
    """Return the folder of all copies of what is at addresses."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return expanded(os.environ.get(CACHE) or Path(base) / "nmt").absolute()


def local_folder(name: str) -> Path:
    """Return the folder at a path, or the local copy of the one at an address."""
    if not is_address(name):
        return expanded(name)
    address = name.rstrip("/")
    return cache_folder() / "copies" / f"{Path(address).name}-{sha256(address.encode()).hexdigest()[:KEY_CHARACTERS]}"
