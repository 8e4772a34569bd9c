"""A local copy of a folder at an address: commands work in the copy, which is compared with the address file by file.

`pull` fetches what has changed there since the last time, and `push` stores what has changed here, the list of all
files last. What has changed in both places is taken from the address.
"""

import fcntl
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import NamedTuple

from nmt.errors import UserError
from nmt.storage.addresses import RemoteFolder, remote_folder
from nmt.storage.files import PARTIAL, checksum, is_plain_name, link, read_json, remove, replacing, write_json
from nmt.storage.index import Entry, is_within, read_index, write_index
from nmt.storage.lease import Lease, LostLeaseError, leased
from nmt.storage.lock import take

STATE, LOCK = ".mirror.json", ".mirror.lock"
OWNER, WRITER = "owner.lease", "writer.lease"
"""Leases at the address: for a whole command, and for replacing the list of files."""
GROWING_BYTES = 1 << 26
"""Smaller files may grow while they are stored, so a copy of them is; nmt renames larger files into place."""
ATTEMPTS = 3
"""How often a list is read again because files of it have been replaced meanwhile."""

Wanted = Callable[[str], bool]
"""Whether a file, given its name, is needed here."""


class Seen(NamedTuple):
    """A file as it was when it was last the same here and at the address."""

    entry: Entry
    mtime_ns: int = 0


@dataclass
class Mirror:
    """The copy in `folder` of what is at `address`, which a setting names."""

    address: str
    folder: Path
    setting: str
    _lease: Lease | None = None
    _thread_lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        """Find the folder at the address, without asking for it yet."""
        self._remote: RemoteFolder = remote_folder(self.address, self.setting)

    @contextmanager
    def owned(self, taken: str, wait: Callable[[str], None] | None = None) -> Iterator[None]:
        """Keep other processes from owning the address during this block; see `Lease.take`."""
        with leased(self._remote, OWNER, self.address, taken=taken, wait=wait) as lease:
            self._lease = lease
            try:
                yield
            finally:
                self._lease = None

    def pull(self, wanted: Wanted = lambda name: True) -> None:
        """Make the wanted files here the same as at the address, except for what has changed only here."""
        with self._locked():
            for attempt in range(ATTEMPTS):
                index = read_index(self._remote, self.address)
                try:
                    self._pull(index, wanted)
                    return
                except UserError:  # a file of this list may have been replaced
                    if attempt + 1 == ATTEMPTS or read_index(self._remote, self.address) == index:
                        raise

    def _pull(self, index: dict[str, Entry], wanted: Wanted) -> None:
        seen = self._read_state()
        for name in [name for name in seen if name not in index or not wanted(name)]:
            if index.get(name) != seen[name].entry:
                if _entry(self.folder / name) == seen[name].entry:
                    remove(self.folder / name)
                self._remove_empty_parents(name)
                del seen[name]
                self._write_state(seen)
        nothing, fetched = Seen(Entry()), {}
        for name in sorted(each for each in index if wanted(each) and seen.get(each, nothing).entry != index[each]):
            if _entry(self.folder / name) != index[name]:
                self._fetch(name, index[name])
                fetched[name] = index[name]
            seen[name] = Seen(index[name], _mtime(self.folder / name))
            self._write_state(seen)
        if fetched:
            _report("fetched", self.address, fetched)

    def _remove_empty_parents(self, name: str) -> None:
        """Delete the folders of a file that are empty without it: an address has no empty folders."""
        with suppress(OSError):  # the first one that is not empty
            for parent in PurePosixPath(name).parents[:-1]:
                (self.folder / parent).rmdir()

    def _fetch(self, name: str, entry: Entry) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not is_within(path, self.folder):
            raise UserError(f"{self.address}: {name} is outside of its folder: choose another address")
        if entry.link:
            link(path, entry.link)
            return
        with replacing(path) as partial:
            if self._remote.fetch(entry.stored_name(name), partial) != entry.sha256:
                raise UserError(f"{self.address}/{entry.stored_name(name)} is damaged: its checksum is another one")

    def push(self) -> None:
        """Store what has changed here, then the list, and delete what the list no longer has."""
        with self._locked():
            seen, before = self._read_state(), read_index(self._remote, self.address)
            changed, stored = self._store_changed(seen, before)
            gone = set(_gone(self.folder, seen, before))
            if not changed and not gone:
                return
            if self._lease is not None:
                self._lease.check()
            with leased(self._remote, WRITER, self.address, taken="is being written", wait=lambda message: None):
                before = read_index(self._remote, self.address)
                after = {name: entry for name, entry in before.items() if name not in gone} | changed
                write_index(self._remote, after)
            kept = {name: each for name, each in seen.items() if name not in gone}
            self._write_state(kept | {name: Seen(entry, stored[name]) for name, entry in changed.items()})
            for name, entry in before.items():
                if after.get(name) != entry and not entry.link:
                    self._remote.remove(entry.stored_name(name))

    def _store_changed(self, seen: dict[str, Seen], index: dict[str, Entry]) -> tuple[dict[str, Entry], dict[str, int]]:
        """Store the files that have changed here; return their entries, and when they were changed."""
        changed, times = {}, {}
        for name in _names(self.folder):
            path, before = self.folder / name, seen.get(name)
            if before and _is_untouched(path, before):
                continue
            with TemporaryDirectory(prefix=".", dir=self.folder) as temporary:
                times[name], content = _mtime(path), _still(path, Path(temporary) / "copy")
                entry = _entry(content)
                if entry is None or (before and entry == before.entry):
                    continue
                if not entry.link and index.get(name) != entry:
                    self._remote.store(content, entry.stored_name(name))
                changed[name] = entry
        if changed:
            _report("stored", self.address, changed)
        return changed, times

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one thread of one process at a time compare the copy."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._thread_lock, (self.folder / LOCK).open("a") as lock:
            take(lock, fcntl.LOCK_EX)
            yield

    def _read_state(self) -> dict[str, Seen]:
        try:
            content = read_json(self.folder / STATE)
            return {name: Seen(Entry(*entry), time) for name, (entry, time) in content.items()}
        except (UserError, ValueError, TypeError, AttributeError):  # there is none yet: files are compared by content
            return {}

    def _write_state(self, seen: dict[str, Seen]) -> None:
        write_json(self.folder / STATE, {name: [list(each.entry), each.mtime_ns] for name, each in seen.items()})


_open: dict[Path, Mirror] = {}
"""The copies that this process stores, by their folders."""


@contextmanager
def publishing(mirror: Mirror) -> Iterator[None]:
    """Store changes of a copy at each call of `publish` during this block, and at its end."""
    _open[mirror.folder] = mirror
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:
        publish(mirror.folder)
        raise
    else:
        mirror.push()
    finally:
        del _open[mirror.folder]


def publish(folder: Path) -> None:
    """Store the changes of a folder if it is the copy of an address; warn if that fails, because it is done again."""
    if mirror := _open.get(folder):
        try:
            mirror.push()
        except LostLeaseError:
            raise
        except (UserError, OSError) as error:  # the latter from the copy of a file, such as a full disk
            print(f"warning: {error}; what is in {folder} is stored later", file=sys.stderr, flush=True)


def _names(folder: Path) -> Iterator[str]:
    """Yield the names of the files and links in a folder that are neither hidden nor unfinished."""
    for each in sorted(folder.iterdir()):
        if each.name.startswith(".") or PARTIAL in each.name:
            continue
        if each.is_dir() and not each.is_symlink():
            with suppress(FileNotFoundError):  # removed meanwhile
                yield from (f"{each.name}/{name}" for name in _names(each))
        else:
            yield each.name


def _gone(folder: Path, seen: dict[str, Seen], index: dict[str, Entry]) -> Iterator[str]:
    """Yield the files of an address that have been deleted here, or whose folder has been."""
    deleted = {name for name in seen if not os.path.lexists(folder / name)}
    folders = {name.rpartition("/")[0] for name in deleted if not (folder / name).parent.exists()}
    yield from (name for name in index if name in deleted or name.rpartition("/")[0] in folders)


def _still(path: Path, copy: Path) -> Path:
    """Return a file that does not change any more: the one at a path if it is large or a link, else a copy."""
    with suppress(FileNotFoundError):
        if not path.is_symlink() and path.stat().st_size < GROWING_BYTES:
            shutil.copyfile(path, copy)
            return copy
    return path


def _entry(path: Path) -> Entry | None:
    """Return the entry of a file or a link; None if it is gone, or leads out of its folder."""
    try:
        if path.is_symlink():
            target = str(path.readlink())
            return Entry(link=target) if is_plain_name(target) else None
        return Entry(checksum(path), path.stat().st_size)
    except (FileNotFoundError, IsADirectoryError):
        return None


def _is_untouched(path: Path, before: Seen) -> bool:
    """Return whether a file has the size and the time that it had, so that it need not be read."""
    with suppress(FileNotFoundError):
        return not path.is_symlink() and (path.stat().st_size, _mtime(path)) == (before.entry.bytes, before.mtime_ns)
    return False


def _report(done: str, address: str, files: Mapping[str, Entry]) -> None:
    print(f"{address}: {done} {len(files):,} files, {sum(each.bytes for each in files.values()):,} bytes", flush=True)


def _mtime(path: Path) -> int:
    return path.lstat().st_mtime_ns if os.path.lexists(path) else 0
