"""Files and folders elsewhere, named by addresses such as s3://bucket/runs, which fsspec reads and writes."""

import fcntl
import hashlib
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, TextIO
from urllib.parse import unquote, urlsplit

from nmt.config.folders import KEY_CHARACTERS, cache_folder, expanded, is_address
from nmt.errors import UserError, nearest
from nmt.packages import import_optional
from nmt.storage.files import PARTIAL, is_plain_name, remove, replacing, take

WEB = ("http", "https")
"""Kinds of addresses of web servers, which take no files and list none."""
WEB_OPTIONS = {"headers": {"Accept-Encoding": "identity"}, "client_kwargs": {"auto_decompress": False}}
"""Ask for files as they are: some servers call a .gz file a compressed answer, which would be decompressed."""
MAX_REASON_CHARACTERS = 200
UNSTORED = ".unstored"
"""The file in a copy that says that its changes could not be stored."""


def local_files(name: str, setting: str) -> list[Path]:
    """Return the files that a name means: the one at a path, or copies of those that match an address.

    Copies stay in the cache, and are fetched again if the file at the address has changed; this process sees one
    version of each.
    """
    return _copies(name, setting) if is_address(name) else [expanded(name)]


def local_file(name: str, setting: str) -> Path:
    """Return the one file that a name means."""
    found = local_files(name, setting)
    if len(found) != 1:
        raise UserError(f"{setting}={name} matches {len(found)} files: name one")
    return found[0]


@contextmanager
def replacing_named(name: str) -> Iterator[Path]:
    """Yield a temporary path to write an output to, which appears at a path or an address if the block succeeds."""
    if not is_address(name):
        path = expanded(name).resolve()  # a link stays one, and its target is replaced
        if path.is_dir():
            raise UserError(f"output={name} is a folder: name a file")
        with replacing(path) as partial:
            yield partial
        return
    if _kind(name) in WEB:
        raise UserError(f"output={name}: files on web servers are only read: name another place")
    with TemporaryDirectory(prefix="nmt-") as folder:
        file = Path(folder) / "file"
        yield file
        system, remote = _file_system(name, "output")
        with _explaining_errors(name, "output"):
            system.put_file(str(file), remote)


def _kind(address: str) -> str:
    return address.partition("://")[0].lower()


def _file_system(address: str, setting: str) -> tuple[Any, str]:
    """Return fsspec's file system for an address, and the path there."""
    from fsspec.core import url_to_fs  # noqa: PLC0415 - slow to import
    from fsspec.registry import known_implementations  # noqa: PLC0415

    kind = _kind(address)
    if kind not in known_implementations:
        raise UserError(f"{setting}={address}: {kind}:// is not known; {nearest(kind, known_implementations)}")
    import_optional("aiohttp" if kind in WEB else str(known_implementations[kind]["class"]).partition(".")[0])
    options = WEB_OPTIONS if kind in WEB else {"auto_mkdir": True} if kind == "file" else {}
    with _explaining_errors(address, setting):
        found: tuple[Any, str] = url_to_fs(address, use_listings_cache=False, **options)
    return found


@contextmanager
def _explaining_errors(address: str, setting: str, then: str = ", and run the same command again") -> Iterator[None]:
    """Turn the errors of a file system, each of which raises its own, into one line, which ends with `then`."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        why = (" ".join(str(error).split()) or type(error).__name__)[:MAX_REASON_CHARACTERS]
        if isinstance(error, FileNotFoundError):
            raise UserError(f"{setting}={address} does not exist ({why})") from error
        raise UserError(
            f"{setting}={address}: {why}: check the address, your credentials and the network{then}"
        ) from error


@cache
def _copies(address: str, setting: str) -> list[Path]:
    (system, path), on_the_web = _file_system(address, setting), _kind(address) in WEB
    with _explaining_errors(address, setting):
        paths = [path] if on_the_web else sorted(system.glob(path))
        if not paths:
            raise FileNotFoundError("no file matches")
        if not on_the_web and any(map(system.isdir, paths)):
            raise UserError(f"{setting}={address} is a folder: name files, for example {address.rstrip('/')}/*")
        return [_copy(system, each) for each in paths]


def _copy(system: Any, path: str) -> Path:
    """Return the copy of this version of a file; the ending of its name tells its format."""
    name = PurePosixPath(unquote(urlsplit(path).path) if _kind(path) in WEB else path).name
    version = hashlib.sha256(f"{path} {system.ukey(path)}".encode()).hexdigest()[:KEY_CHARACTERS]
    file = cache_folder() / "files" / f"{version}-{name}"
    if not file.exists():
        with replacing(file) as partial:
            system.get_file(path, str(partial))
    return file


Stamp = tuple[int, int]
"""The size and the time of a file."""


class FolderCopy:
    """The copy in `folder` of what is at `address`, which `setting` names. What differs is taken from the address.

    A folder with a marker file, which is stored last and names the checksums of the others, is unchanged if that file
    is.
    """

    def __init__(self, address: str, folder: Path, setting: str, marker: str) -> None:
        """Find the folder at the address, without asking for it yet."""
        if _kind(address) in WEB:
            raise UserError(f"{setting}={address} is on a web server, which lists no files: name another folder")
        self.address, self.folder, self._setting, self._marker = address, folder, setting, marker
        self._system, path = _file_system(address, setting)
        self._path = path.rstrip("/")
        self._known = dict[str, Stamp | None]()
        """The files at the address: the stamps of their copies here, or None if they are fetched when needed."""

    def fetch(self, heavy: Collection[str] = ()) -> None:
        """Fetch what is missing here or has changed, except files of `heavy` names, and remove what is not there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._lock() as lock, _explaining_errors(self.address, self._setting):
            found = (name.removeprefix(f"{self._path}/") for name in self._system.find(self._path))
            there = {name for name in found if all(map(is_plain_name, name.split("/")))}  # nothing outside of the copy
            if take(lock, fcntl.LOCK_EX | fcntl.LOCK_NB):
                if (self.folder / UNSTORED).exists():
                    raise UserError(self._what_is_unstored)
                self._remove_outdated(there)
                for name in sorted(there, key=self._is_marker):
                    if PurePosixPath(name).name not in heavy:
                        self._get(name)
            else:  # another process of this machine fetches the copy, or is changing it, which makes it the newest one
                take(lock, fcntl.LOCK_SH)
        self._known = dict.fromkeys(there) | self._files()
        _copies_here[self.folder] = self

    @property
    def _what_is_unstored(self) -> str:
        return (
            f"{self.folder} has changes that could not be stored at {self.address}: copy its files there and "
            f"delete {self.folder / UNSTORED}, or delete {self.folder} to do without them"
        )

    def _remove_outdated(self, there: Collection[str]) -> None:
        """Remove the files here, except in folders whose marker is the same there."""
        here = self._files()
        same = {
            PurePosixPath(name).parent
            for name in filter(self._is_marker, here.keys() & there)
            if (self.folder / name).read_bytes() == self._system.cat_file(f"{self._path}/{name}")
        }
        for name in here:
            if name not in there or PurePosixPath(name).parent not in same:
                remove(self.folder / name)

    def bring(self, path: Path) -> None:
        """Fetch a file that `fetch` has left out, unless another process has done so meanwhile."""
        name = path.relative_to(self.folder).as_posix()
        if name in self._known and self._known[name] is None:
            with (self.folder / ".bring.lock").open("a") as lock, _explaining_errors(self.address, self._setting):
                take(lock, fcntl.LOCK_EX)
                self._get(name)
            self._known[name] = _stamp(path)

    def _get(self, name: str) -> None:
        if not (self.folder / name).exists():
            with replacing(self.folder / name) as partial:
                self._system.get_file(f"{self._path}/{name}", str(partial))

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Store changes of the copy at the end of this block, during which no other process replaces its files."""
        with self._lock() as lock:
            take(lock, fcntl.LOCK_SH)
            try:
                yield
            finally:
                try:
                    self.store()
                except UserError as error:
                    raise UserError(f"{error}; {self._what_is_unstored}") from error

    def store(self) -> None:
        """Store what has changed here since it was fetched or stored, marker files last, and delete what is gone."""
        here = self._files()
        changed = [name for name in here if self._known.get(name) != here[name]]
        gone = [
            name
            for name in self._known.keys() - here.keys()
            # a file that was never fetched is gone if its folder is
            if self._known[name] or not (self.folder / name).parent.exists()
        ]
        if not changed and not gone:
            return
        (self.folder / UNSTORED).touch()  # now, because nothing else tells of changes if a kill ends this
        with _explaining_errors(self.address, self._setting, then=""):
            for name in sorted(changed, key=self._is_marker):
                self._system.put_file(str(self.folder / name), f"{self._path}/{name}")
                self._known[name] = here[name]
            for name in gone:
                with suppress(FileNotFoundError):
                    self._system.rm(f"{self._path}/{name}")
                del self._known[name]
        (self.folder / UNSTORED).unlink()

    def _files(self) -> dict[str, Stamp]:
        """Return the stamps of the files here that are neither hidden nor unfinished, without links."""
        found = {}
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder)
            is_whole = not any(part.startswith(".") or PARTIAL in part for part in name.parts)
            if is_whole and path.is_file() and not path.is_symlink():
                with suppress(FileNotFoundError):  # removed meanwhile
                    found[name.as_posix()] = _stamp(path)
        return found

    def _is_marker(self, name: str) -> bool:
        return PurePosixPath(name).name == self._marker

    def _lock(self) -> TextIO:
        return (self.folder / ".copy.lock").open("a")


def _stamp(path: Path) -> Stamp:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


_copies_here: dict[Path, FolderCopy] = {}
"""The copies that this process has fetched, by their folders."""


def bring(path: Path) -> None:
    """Fetch a large file of a copy of an address if it is not here yet."""
    for folder in _copies_here.keys() & set(path.parents):
        _copies_here[folder].bring(path)


def store_changes(folder: Path) -> None:
    """Store the changes of a folder if it is the copy of an address; warn if that fails, because it is done again."""
    if copy := _copies_here.get(folder):
        try:
            copy.store()
        except (UserError, OSError) as error:
            print(f"warning: {error}; what is in {folder} is stored later", file=sys.stderr, flush=True)
