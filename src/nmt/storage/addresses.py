"""Files elsewhere, named by addresses such as s3://bucket/corpus.en.gz, which fsspec reads and writes."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

from nmt.config.folders import cache_folder, expanded, is_address
from nmt.errors import UserError, nearest
from nmt.packages import import_optional
from nmt.storage.files import replacing

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
