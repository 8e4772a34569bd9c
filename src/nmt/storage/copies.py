"""Copies of the folders of corpora and runs whose addresses paths.data and paths.outputs name.

A folder with a marker file, which is written last and names the checksums of the others, is complete if it has that
file, and unchanged if that file is.
"""

import fcntl
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TextIO

from nmt.errors import UserError
from nmt.storage.addresses import explaining_errors, file_system, is_on_the_web
from nmt.storage.files import PARTIAL, is_plain_name, remove, replacing
from nmt.storage.lock import take

LOCK = ".copy.lock"
State = tuple[int, int]
"""The size and the time of a file."""


class FolderCopy:
    """The copy in `folder` of what is at `address`, which `setting` names. What differs is taken from the address."""

    def __init__(self, address: str, folder: Path, setting: str, marker: str) -> None:
        """Find the folder at the address, without asking for it yet."""
        if is_on_the_web(address):
            raise UserError(f"{setting}={address} is on a web server, which lists no files: name another folder")
        self.address, self.folder, self._setting, self._marker = address, folder, setting, marker
        self._system, path = file_system(address, setting)
        self._path = path.rstrip("/")
        self._known: dict[str, State] = {}

    def fetch(self, heavy: Collection[str] = (), needed: Callable[[], Iterable[str]] = tuple) -> None:
        """Fetch what is missing here or has changed, and remove what is not there.

        Args:
            heavy: The names of files that are left out in every folder.
            needed: Returns those of them to fetch, with their folders, once all others are here.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._open_lock() as lock, explaining_errors(self.address, self._setting):
            there = self._names()
            if take(lock, fcntl.LOCK_EX | fcntl.LOCK_NB):
                self._fetch(there, heavy)
            else:  # another process of this machine fetches the copy, or is changing it, which makes it the newest one
                take(lock, fcntl.LOCK_SH)
            self._fetch_missing(name for name in needed() if name in there)
        self._known = self._files()

    def _fetch(self, there: Collection[str], heavy: Collection[str]) -> None:
        unchanged = {PurePosixPath(name).parent for name in there if self._is_marker(name) and self._is_same(name)}
        for name in self._files().keys() - {name for name in there if PurePosixPath(name).parent in unchanged}:
            remove(self.folder / name)
        light = (name for name in there if PurePosixPath(name).name not in heavy)
        self._fetch_missing(sorted(light, key=self._is_marker))

    def _fetch_missing(self, names: Iterable[str]) -> None:
        for name in names:
            if not (self.folder / name).exists():
                with replacing(self.folder / name) as partial:
                    self._system.get_file(self._remote(name), str(partial))

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Store changes of the copy when `store_changes` is called during this block, and at its end."""
        with self._open_lock() as lock:
            take(lock, fcntl.LOCK_SH)
            _storing[self.folder] = self
            try:
                yield
            except BaseException:
                store_changes(self.folder)
                raise
            else:
                self.store()
            finally:
                del _storing[self.folder]

    def store(self) -> None:
        """Store what has changed here since it was fetched or stored, marker files last."""
        here = self._files()
        changed = sorted((name for name in here if self._known.get(name) != here[name]), key=self._is_marker)
        gone = self._known.keys() - here.keys()
        with explaining_errors(self.address, self._setting):
            for name in filter(self._is_marker, (*changed, *gone)):
                self._remove(name)  # the folder is incomplete until its marker is stored again
            for name in changed:
                self._system.put_file(str(self.folder / name), self._remote(name))
                self._known[name] = here[name]
            for name in gone:
                self._remove(name)
                del self._known[name]

    def _remove(self, name: str) -> None:
        """Remove a file there; with a marker file that is gone here, all of its folder."""
        is_folder = self._is_marker(name) and not (self.folder / name).exists()
        with suppress(FileNotFoundError):
            path = self._remote(name)
            self._system.rm(path.rpartition("/")[0] if is_folder else path, recursive=is_folder)

    def _names(self) -> set[str]:
        """Return the names of the files there, without those that would be outside of the copy."""
        found = (name.removeprefix(f"{self._path}/") for name in self._system.find(self._path))
        return {name for name in found if all(map(is_plain_name, name.split("/")))}

    def _files(self) -> dict[str, State]:
        """Return the files here that are neither hidden nor unfinished, without links."""
        found = {}
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder)
            is_whole = not any(part.startswith(".") or PARTIAL in part for part in name.parts)
            if is_whole and path.is_file() and not path.is_symlink():
                with suppress(FileNotFoundError):  # removed meanwhile
                    found[name.as_posix()] = path.stat().st_size, path.stat().st_mtime_ns
        return found

    def _is_marker(self, name: str) -> bool:
        return PurePosixPath(name).name == self._marker

    def _is_same(self, name: str) -> bool:
        file = self.folder / name
        return file.is_file() and file.read_bytes() == self._system.cat_file(self._remote(name))

    def _open_lock(self) -> TextIO:
        return (self.folder / LOCK).open("a")

    def _remote(self, name: str) -> str:
        return f"{self._path}/{name}"


_storing: dict[Path, FolderCopy] = {}
"""The copies whose changes this process stores, by their folders."""


def store_changes(folder: Path) -> None:
    """Store the changes of a folder if it is the copy of an address; warn if that fails, because it is done again."""
    if copy := _storing.get(folder):
        try:
            copy.store()
        except (UserError, OSError) as error:
            print(f"warning: {error}; what is in {folder} is stored later", file=sys.stderr, flush=True)
