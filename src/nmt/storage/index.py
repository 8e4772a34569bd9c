"""The list of the files of a folder at an address: the only file there that is ever replaced.

Each version of a file is stored under a name of its own, which ends with its checksum. A reader that has the list
therefore finds all files as they belong together, and a writer that is killed before it writes the list has changed
nothing.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nmt.errors import UserError
from nmt.storage.addresses import RemoteFolder
from nmt.storage.files import is_plain_name, seal

INDEX = "index.json"
FORMAT = 1
SUFFIX_CHARACTERS = 16


class Entry(NamedTuple):
    """A file, or a link to another name in the same folder."""

    sha256: str = ""
    bytes: int = 0
    link: str = ""

    def stored_name(self, name: str) -> str:
        """Return the name at the address; a link has none."""
        return f"{name}.{self.sha256[:SUFFIX_CHARACTERS]}"


Index = Mapping[str, Entry]
"""The entries of a folder by their names in it, with / between folders."""


def read_index(folder: RemoteFolder, address: str) -> dict[str, Entry]:
    """Return the list of an address; it is empty if nothing has been written there."""
    content = folder.read(INDEX)
    if content is None:
        return {}
    try:
        found = json.loads(content)
        recorded = found.pop("seal")
        entries = {name: Entry(*each) for name, each in found["files"].items()}
        good = recorded == seal(found) and all(map(_is_safe, entries, entries.values()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _not_ours(address) from error
    if not good or found.get("format") != FORMAT:
        raise _not_ours(address)
    return entries


def write_index(folder: RemoteFolder, index: Index) -> None:
    """Replace the list of an address."""
    content: dict[str, Any] = {"format": FORMAT, "files": {name: list(each) for name, each in sorted(index.items())}}
    folder.write(INDEX, (json.dumps({**content, "seal": seal(content)}, indent=1) + "\n").encode())


def is_within(path: Path, folder: Path) -> bool:
    """Return whether no folder above a path, up to its folder, is a link that leads elsewhere."""
    return path.parent.resolve().is_relative_to(folder.resolve())


def _is_safe(name: str, entry: Entry) -> bool:
    """Return whether an entry, which a stranger may have written, stays inside the folder."""
    right = isinstance(entry.sha256, str) and isinstance(entry.bytes, int) and isinstance(entry.link, str)
    return right and all(map(is_plain_name, name.split("/"))) and (not entry.link or is_plain_name(entry.link))


def _not_ours(address: str) -> UserError:
    return UserError(f"{address}/{INDEX} is damaged, or nmt has not written it: choose another address")
