"""Files and folders elsewhere, named by addresses such as s3://bucket/runs, which fsspec reads and writes."""

import fcntl
import hashlib
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, TextIO
from urllib.parse import unquote, urlsplit

from nmt.config.folders import cache_folder, expanded, is_address
from nmt.errors import UserError, nearest
from nmt.packages import import_optional
from nmt.storage.files import PARTIAL, is_plain_name, remove, replacing
from nmt.storage.lock import take

PACKAGES_OF_FSSPEC = {"http": "aiohttp", "https": "aiohttp"}
"""Packages that file systems of fsspec itself need, by the kind of address."""
WEB_OPTIONS = {"headers": {"Accept-Encoding": "identity"}, "client_kwargs": {"auto_decompress": False}}
"""Ask for files as they are: some servers call a .gz file a compressed answer, which would be decompressed."""
LOCAL = ("file", "local")
"""Kinds of addresses of files on this machine."""
KEY_CHARACTERS = 12
MAX_REASON_CHARACTERS = 200


def is_on_the_web(address: str) -> bool:
    """Return whether an address is on a web server, which takes no files and lists none."""
    return address.lower().startswith(("http://", "https://"))


def local_files(name: str, setting: str) -> list[Path]:
    """Return the files that a name means: the one at a path, or copies of those that match an address.

    Copies are kept in fsspec's cache, and are fetched again if the file at the address has changed; this process sees
    one version of each.
    """
    path = _local_path(name)
    return [path] if path else _copies(name, setting)


def local_file(name: str, setting: str) -> Path:
    """Return the one file that a name means."""
    found = local_files(name, setting)
    if len(found) != 1:
        raise UserError(f"{setting}={name} matches {len(found)} files: name one")
    return found[0]


@contextmanager
def replacing_named(name: str, setting: str) -> Iterator[Path]:
    """Yield a temporary path to write a file to, which appears at a path or an address if the block succeeds."""
    if path := _local_path(name):
        path = path.resolve()  # a link stays one, and its target is replaced
        if path.is_dir():
            raise UserError(f"{setting}={name} is a folder: name a file")
        with replacing(path) as partial:
            yield partial
        return
    if is_on_the_web(name):
        raise UserError(f"{setting}={name}: files on web servers are only read: name another place")
    with TemporaryDirectory(prefix="nmt-") as folder:
        file = Path(folder) / "file"
        yield file
        system, remote = file_system(name, setting)
        with explaining_errors(name, setting):
            system.put_file(str(file), remote)


def file_system(address: str, setting: str) -> tuple[Any, str]:
    """Return fsspec's file system for an address, and the path there."""
    from fsspec.core import url_to_fs  # noqa: PLC0415 - slow to import
    from fsspec.registry import known_implementations  # noqa: PLC0415

    kind = address.partition("://")[0].lower()
    if kind not in known_implementations:
        raise UserError(f"{setting}={address}: {kind}:// is not known; {nearest(kind, known_implementations)}")
    package = str(known_implementations[kind]["class"]).partition(".")[0]
    import_optional(PACKAGES_OF_FSSPEC.get(kind, package))
    options = WEB_OPTIONS if is_on_the_web(address) else {"auto_mkdir": True} if kind in LOCAL else {}
    with explaining_errors(address, setting):
        found: tuple[Any, str] = url_to_fs(address, use_listings_cache=False, **options)
    return found


@contextmanager
def explaining_errors(address: str, setting: str) -> Iterator[None]:
    """Turn the errors of a file system, each of which raises its own, into one line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        why = (" ".join(str(error).split()) or type(error).__name__)[:MAX_REASON_CHARACTERS]
        if isinstance(error, FileNotFoundError):
            raise UserError(f"{setting}={address} does not exist ({why})") from error
        raise UserError(
            f"{setting}={address}: {why}: check the address, your credentials and the network, and run the same "
            "command again"
        ) from error


def _local_path(name: str) -> Path | None:
    """Return the path that a name means; None if it is an address elsewhere, or one with wildcards."""
    if not is_address(name):
        return expanded(name)
    kind, _, path = name.partition("://")
    return Path(path) if kind.lower() in LOCAL and "*" not in path else None


@cache
def _copies(address: str, setting: str) -> list[Path]:
    from fsspec.core import OpenFile, OpenFiles  # noqa: PLC0415 - slow to import
    from fsspec.implementations.cached import WholeFileCacheFileSystem  # noqa: PLC0415

    system, path = file_system(address, setting)
    with explaining_errors(address, setting):
        paths = [path] if is_on_the_web(address) else sorted(system.glob(path))
        if not paths:
            raise FileNotFoundError("no file matches")
        if not is_on_the_web(address) and any(map(system.isdir, paths)):
            raise UserError(f"{setting}={address} is a folder: name files, for example {address.rstrip('/')}/*")
        storage = cache_folder() / "files" / address.partition("://")[0].lower()
        cached = WholeFileCacheFileSystem(
            fs=system, cache_storage=str(storage), check_files=True, cache_mapper=_name_in_cache
        )
        opened = cached.open_many(OpenFiles([OpenFile(cached, each) for each in paths], mode="rb", fs=cached))
    for file in opened:
        file.close()
    return [Path(file.name) for file in opened]


def _name_in_cache(path: str) -> str:
    """Return the name of a copy, whose ending tells its format."""
    name = PurePosixPath(unquote(urlsplit(path).path) if is_on_the_web(path) else path).name
    return f"{hashlib.sha256(path.encode()).hexdigest()[:KEY_CHARACTERS]}-{name}"


class FolderCopy:
    """The copy in `folder` of what is at `address`, which `setting` names. What differs is taken from the address.

    A folder with a marker file, which is written last and names the checksums of the others, is complete if it has that
    file, and unchanged if that file is.
    """

    def __init__(self, address: str, folder: Path, setting: str, marker: str) -> None:
        """Find the folder at the address, without asking for it yet."""
        if is_on_the_web(address):
            raise UserError(f"{setting}={address} is on a web server, which lists no files: name another folder")
        self.address, self.folder, self._setting, self._marker = address, folder, setting, marker
        self._system, path = file_system(address, setting)
        self._path = path.rstrip("/")
        self._known: dict[str, tuple[int, int]] = {}
        """The sizes and times of the files that are the same at the address."""

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
        here, unchanged = self._files(), set()
        for name in filter(self._is_marker, here.keys() & there):
            if (self.folder / name).read_bytes() == self._system.cat_file(self._remote(name)):
                unchanged.add(PurePosixPath(name).parent)
        for name in here.keys() - {name for name in there if PurePosixPath(name).parent in unchanged}:
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

    def _files(self) -> dict[str, tuple[int, int]]:
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

    def _open_lock(self) -> TextIO:
        return (self.folder / ".copy.lock").open("a")

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
