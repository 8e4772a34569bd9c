"""Folders that may be elsewhere: an address such as s3://bucket/runs stands for a local copy of what is there."""

import os
import re
from hashlib import sha256
from pathlib import Path

from nmt.errors import UserError

COPIES = "NMT_COPIES"
"""Environment variable that names the folder of the local copies."""
NAME_CHARACTERS = 40
KEY_CHARACTERS = 12


def is_address(name: str) -> bool:
    """Return whether a name is an address rather than a path."""
    return bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name))


def expanded(name: str | Path) -> Path:
    """Return a path with the home in place of ~; refuse one of a user that does not exist."""
    try:
        return Path(name).expanduser()
    except RuntimeError as error:
        raise UserError(f"{name} begins with ~ and no user of this machine: write ./{name} for such a file") from error


def folder_to_write(setting: str, name: str) -> Path:
    """Return the path of a folder that a setting names; refuse an address, to which nothing could be written."""
    if is_address(name):
        raise UserError(f"{setting}={name} is an address: name a local folder")
    return expanded(name)


def local_folder(name: str) -> Path:
    """Return the folder at a path, or the local copy of the one at an address."""
    if not is_address(name):
        return expanded(name)
    address = name.rstrip("/")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    copies = expanded(os.environ.get(COPIES) or Path(base) / "nmt" / "copies").absolute()
    readable = re.sub(r"[^A-Za-z0-9.-]+", "-", address.partition("://")[2]).strip("-.")[-NAME_CHARACTERS:]
    return copies / f"{readable}-{sha256(address.encode()).hexdigest()[:KEY_CHARACTERS]}"
