"""Folders that may be elsewhere: an address such as s3://bucket/runs stands for a local copy of what is there."""

import os
import re
from hashlib import sha256
from pathlib import Path

from nmt.errors import UserError

CACHE = "NMT_CACHE"
"""Environment variable that names the folder of all copies of what is at addresses."""
NAME_CHARACTERS = 40
KEY_CHARACTERS = 12


def is_address(name: str) -> bool:
    """Return whether a name is an address rather than a path."""
    return bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name))


def expanded(name: str | Path) -> Path:
    """Return a path with the home in place of ~; refuse an address, and the home of a user that does not exist."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:(/|$)", str(name)):  # one slash, because a Path has no more of it
        raise UserError(f"{name} is an address: name a local file or folder, or write ./{name} if it is one")
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise UserError(f"{name} begins with ~ and no user of this machine: write ./{name} for such a file") from error


def folder_to_write(setting: str, name: str) -> Path:
    """Return the path of a folder that a setting names; refuse an address, to which nothing could be written."""
    if is_address(name):
        raise UserError(f"{setting}={name} is an address: name a local folder")
    return expanded(name)


def cache_folder() -> Path:
    """Return the folder of all copies of what is at addresses."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return expanded(os.environ.get(CACHE) or Path(base) / "nmt").absolute()


def local_folder(name: str) -> Path:
    """Return the folder at a path, or the local copy of the one at an address."""
    if not is_address(name):
        return expanded(name)
    address = name.rstrip("/")
    readable = re.sub(r"[^A-Za-z0-9.-]+", "-", address.partition("://")[2]).strip("-.")[-NAME_CHARACTERS:]
    key = sha256(address.encode()).hexdigest()[:KEY_CHARACTERS]
    return cache_folder() / "copies" / f"{readable}-{key}"
