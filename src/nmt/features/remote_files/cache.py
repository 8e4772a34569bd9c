"""Local copies of remote files, up to a limit of bytes: what was not used for the longest time is removed first.

Each version of a file has a folder and a lock. A process holds a shared lock on every copy that it uses until it ends.
Copies are fetched and removed under an exclusive lock, so no process loses a file that it reads.
"""

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from nmt.config.folders import expanded
from nmt.errors import ConfigError, UserError
from nmt.features.remote_files.remote import Version
from nmt.storage.files import checksum, is_plain_name, read_json, remove_folder, seal, sync, write_json
from nmt.storage.lock import take

FOLDER = "NMT_CACHE"
"""Environment variable that names the folder."""
LIMIT = "NMT_CACHE_GB"
"""Environment variable with the limit, in GB of 10^9 bytes."""
DEFAULT_GB = "100"
KEY_CHARACTERS = 32
NAMELESS = "file"
"""The name of a copy whose address ends with no name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The copy of one version of a file, in a folder of its own."""

    folder: Path

    @property
    def partial(self) -> Path:
        """The copy while it is incomplete; an interrupted process leaves it for the next one."""
        return self.folder / "partial"

    @property
    def _record(self) -> Path:
        return self.folder / "record.json"

    def whole_copy(self) -> Path | None:
        """Return the copy if it is complete and undamaged."""
        try:
            content = read_json(self._record)
            name, sha256, recorded = content["name"], content["sha256"], content.pop("seal")
        except (UserError, KeyError, AttributeError, TypeError):
            return None
        file = self.folder / str(name)
        if recorded != seal(content) or not is_plain_name(str(name)) or not file.is_file():
            return None
        return file if checksum(file) == sha256 else None

    def complete(self, address: str, name: str, sha256: str) -> Path:
        """Give a complete copy its name and return it; the record is written last."""
        file = self.folder / (name if is_plain_name(name) else NAMELESS)
        sync(self.partial)
        self.partial.replace(file)
        content = {"address": address, "name": file.name, "sha256": sha256}
        write_json(self._record, {**content, "seal": seal(content)})
        return file


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder of copies."""

    folder: Path
    limit: int
    """The largest number of bytes."""
    _in_use: dict[Path, BinaryIO] = field(default_factory=dict)
    """The locks of the copies that this process uses, held until it ends."""

    @classmethod
    def of_this_machine(cls) -> "Cache":
        """Return the cache that the environment describes."""
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        folder = expanded(os.environ.get(FOLDER) or Path(base) / "nmt" / "files")
        given = os.environ.get(LIMIT) or DEFAULT_GB
        try:
            gigabytes = float(given)
        except ValueError:
            gigabytes = 0.0
        if not 0 < gigabytes < 1e9:
            raise ConfigError(f"{LIMIT}={given} must be a number of GB above 0")
        return cls(folder.absolute(), int(gigabytes * 1e9))

    def copy(self, address: str, version: Version, name: str, fetch: Callable[[Path], str]) -> Path:
        """Return a copy of a version of a file, which stays there until this process ends.

        Args:
            address: Where the file is.
            version: The version.
            name: The name of the copy.
            fetch: Completes a partial copy and returns its SHA-256; called if there is no whole copy.
        """
        key = hashlib.sha256(json.dumps([address, version]).encode()).hexdigest()[:KEY_CHARACTERS]
        entry = Entry(self.folder / key)
        with self._explaining_disk_errors():
            lock = self._lock(entry)
            try:
                while True:
                    take(lock, fcntl.LOCK_SH)
                    if file := entry.whole_copy():
                        with suppress(PermissionError):  # another user's copy
                            os.utime(entry.folder)
                        return file
                    _lock_exclusively(lock, address)
                    if not entry.whole_copy():  # another process may have fetched it meanwhile
                        self._make_room_and_fetch(entry, address, version, name, fetch)
            except BaseException:
                self._in_use.pop(entry.folder).close()
                raise

    @contextmanager
    def _explaining_disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(
                f"cannot write to {self.folder}: {error.strerror or error}. "
                f"Free some space there, or name another folder by {FOLDER}"
            ) from error

    def _make_room_and_fetch(
        self, entry: Entry, address: str, version: Version, name: str, fetch: Callable[[Path], str]
    ) -> None:
        entry.folder.mkdir(parents=True, exist_ok=True)
        have = entry.partial.stat().st_size if entry.partial.exists() else 0
        self._make_room(version.size - have, address)
        sha256 = fetch(entry.partial)
        self._make_room(0, address)  # the size may have been unknown
        entry.complete(address, name, sha256)

    def _lock(self, entry: Entry) -> BinaryIO:
        """Return the open lock file of a copy, which this process keeps."""
        if entry.folder not in self._in_use:
            entry.folder.mkdir(parents=True, exist_ok=True)
            self._in_use[entry.folder] = _open_lock(entry.folder)
        return self._in_use[entry.folder]

    def _make_room(self, needed: int, address: str) -> None:
        """Remove copies that no process uses until a number of bytes fits in; refuse what never fits."""
        sizes = {each: _bytes_in(each) for each in self.folder.iterdir() if each.is_dir()}
        total = sum(sizes.values()) + max(needed, 0)
        for folder in sorted(sizes, key=_last_use):
            if total > self.limit and folder not in self._in_use and _remove_unused(folder):
                total -= sizes[folder]
        if total > self.limit:
            raise UserError(
                f"{address} does not fit into the cache {self.folder}: {total / 1e9:.3g} GB are needed simultaneously, "
                f"and the limit is {self.limit / 1e9:g} GB; raise it by {LIMIT}"
            )


def _lock_exclusively(lock: BinaryIO, address: str) -> None:
    if not take(lock, fcntl.LOCK_EX | fcntl.LOCK_NB):
        print(f"{address}: waiting for another process that fetches or reads it", file=sys.stderr, flush=True)
        take(lock, fcntl.LOCK_EX)


def _open_lock(folder: Path) -> BinaryIO:
    """Open the lock file of a copy; that of another user can only be read, which is enough for a lock."""
    file = folder.with_name(f"{folder.name}.lock")
    try:
        return file.open("ab")
    except PermissionError:
        return file.open("rb")


def _last_use(folder: Path) -> float:
    with suppress(OSError):  # another process may remove it meanwhile
        return folder.stat().st_mtime
    return 0.0


def _bytes_in(folder: Path) -> int:
    with suppress(OSError):  # another process may remove it meanwhile
        return sum(each.stat().st_size for each in folder.iterdir())
    return 0


def _remove_unused(folder: Path) -> bool:
    """Remove a copy unless a process uses it or it is another user's; return whether it is gone."""
    if not os.access(folder, os.W_OK):
        return not folder.exists()
    with _open_lock(folder) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        if folder.exists():
            remove_folder(folder)
        return True
