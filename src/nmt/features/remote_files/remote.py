"""A file in a remote file system: what fsspec knows about it, and errors in words."""

import errno
import http
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from nmt.compute.packages import import_optional
from nmt.data.sources.formats import COMPRESSED
from nmt.errors import UserError, nearest

PACKAGES_OF_FSSPEC = {"http": "aiohttp", "https": "aiohttp"}
"""Packages that file systems of fsspec itself need, by the kind of address."""
MARKS = ("ETag", "etag", "md5Hash", "Content-MD5", "generation", "blob_id", "LastModified", "Last-Modified", "created",
         "mtime", "modify", "modificationTime", "sha")  # fmt: skip
"""What tells versions of a file apart, in the words of several file systems."""
UNKNOWN_SIZE = -1
BLOCK_BYTES = 1 << 23
"""Bytes that are requested together, except from web servers."""
UNCHANGED = {"Accept-Encoding": "identity"}
"""Asks a web server for the file as it is: of an answer that it compresses, it knows no size and no parts."""
SECONDS_OF_SILENCE = 60
"""How long a web server may send nothing; its whole answer may take any time."""
MAX_REASON_CHARACTERS = 200
NO_CREDENTIALS = ("NoCredentialsError", "RefreshError", "DefaultCredentialsError")
"""Errors of the packages of cloud services, which are optional."""
PASSING = (408, 429)
"""Answers of web servers that ask for patience."""


class Version(NamedTuple):
    """A version of a remote file."""

    size: int
    """Bytes, or UNKNOWN_SIZE."""
    marks: dict[str, str]
    """What the server says of its content or its date."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A file at an address."""

    address: str
    setting: str
    """The setting that names it, for errors."""
    system: Any
    """The file system of fsspec."""
    path: str
    """Its path in the file system."""

    @classmethod
    def at(cls, address: str, setting: str) -> "Remote":
        """Return the file at an address; refuse kinds of addresses that are unknown or need a package."""
        from fsspec.core import url_to_fs  # noqa: PLC0415 - slow to import
        from fsspec.registry import known_implementations  # noqa: PLC0415

        kind = address.partition("://")[0].lower()
        if kind not in known_implementations:
            raise UserError(f"{setting}={address}: {kind}:// is not known; {nearest(kind, known_implementations)}")
        package = str(known_implementations[kind]["class"]).partition(".")[0]
        import_optional(PACKAGES_OF_FSSPEC.get(kind, package))
        try:
            system, path = url_to_fs(address, use_listings_cache=False, **_web_options(address))
        except (ImportError, ValueError, OSError) as error:
            raise UserError(f"{setting}={address} cannot be used ({reason(error)}): check the address") from error
        return cls(address, setting, system, path)

    @property
    def is_on_the_web(self) -> bool:
        """Whether it is on a web server, which takes no files and lists none."""
        return _is_on_the_web(self.address)

    @property
    def local(self) -> Path | None:
        """The path of a file on this machine, which needs no copy; None if it is elsewhere."""
        return Path(self.path) if self.address.lower().startswith(("file://", "local://")) else None

    @property
    def name(self) -> str:
        """The name of the file, whose ending tells its format."""
        return _name_on_the_web(self.address) if self.is_on_the_web else PurePosixPath(self.path).name

    @property
    def has_wildcards(self) -> bool:
        """Whether it stands for all files that match."""
        return "*" in self.path and not self.is_on_the_web

    def matches(self) -> list["Remote"]:
        """Return the files that match the wildcards, in the order of their names."""
        found = sorted(self.system.glob(self.path))
        if not found:
            raise FileNotFoundError("no file matches")
        return [Remote(self.system.unstrip_protocol(path), self.setting, self.system, path) for path in found]

    def version(self) -> Version:
        """Ask for the present version; a file of which nothing but a size is known has a new one each time."""
        self.system.invalidate_cache()
        try:
            info = self.system.info(self.path)
        except FileNotFoundError as error:  # what fsspec calls every failure of a web server
            if self.is_on_the_web and error.__cause__:
                raise error.__cause__ from None
            raise
        if info.get("type") == "directory":
            raise IsADirectoryError(self.address)
        size = UNKNOWN_SIZE if info.get("size") is None else int(info["size"])
        if self.is_on_the_web and not size:  # some servers say so in every answer without a body
            size = UNKNOWN_SIZE
        marks = {mark: str(info[mark]) for mark in MARKS if info.get(mark)}
        if sha256 := (info.get("lfs") or {}).get("sha256"):
            marks["sha256"] = sha256
        if not marks:
            marks["asked"] = secrets.token_hex()
        return Version(size, marks)

    @contextmanager
    def reading(self, start: int, size: int) -> Iterator[tuple[Any, bool]]:
        """Yield the open file at a place, or at its beginning if the server cannot begin there; and whether it did.

        A web server is asked once for all the rest, because one that cannot begin in the middle sends the whole file.
        """
        if not self.is_on_the_web:
            with self.system.open(self.path, "rb", block_size=BLOCK_BYTES, cache_type="readahead") as file:
                goes_on = not start or file.seekable()
                if start and goes_on:
                    file.seek(start)
                yield file, goes_on
            return
        begin = {"Range": f"bytes={start}-"} if start and size != UNKNOWN_SIZE else {}
        with self.system.open(self.path, "rb", block_size=0, size=size, headers={**UNCHANGED, **begin}) as file:
            yield file, not start or file.r.status == http.HTTPStatus.PARTIAL_CONTENT

    def final_error(self, error: Exception, doing: str) -> UserError | None:
        """Return the error for the user if another attempt to fetch or store it would fail as well; else None."""
        found = self._explanation(error, doing)
        return UserError(f"{self.setting}={self.address}{found}") if found else None

    def _explanation(self, error: Exception, doing: str) -> str:
        """Return what is wrong and what to do; empty if the error may pass."""
        why, status = reason(error), getattr(error, "status", None)
        found = ""
        if isinstance(error, FileNotFoundError) or status in (404, 410):
            found = f" does not exist ({why}): check the address and the bucket"
        elif isinstance(error, IsADirectoryError):
            found = f" is a folder: name files, for example {self.address.rstrip('/')}/*.tsv.gz"
        elif isinstance(error, PermissionError) or status == 403:
            found = f": access is refused ({why}): check your credentials and what they allow"
        elif isinstance(error, NotImplementedError):
            found = f": addresses of this kind cannot {doing} files: choose another kind"
        elif isinstance(error, OSError) and error.errno == errno.EINVAL:
            found = f": the request is refused ({why}): have your credentials expired?"
        elif type(error).__name__ in NO_CREDENTIALS or status == 401:
            found = f": there are no valid credentials ({why}): log in, or set them in the environment"
        elif self.is_on_the_web and isinstance(error, ValueError):  # as errors about addresses and certificates are
            found = f" cannot be used ({why}): check the address"
        elif isinstance(status, int) and 400 <= status < 500 and status not in PASSING:
            found = f": the server refuses the request ({why}): check the address and your credentials"
        return found


def _is_on_the_web(address: str) -> bool:
    return address.lower().startswith(("http://", "https://"))


def _name_on_the_web(address: str) -> str:
    return PurePosixPath(unquote(urlsplit(address).path)).name


def _web_options(address: str) -> dict[str, Any]:
    """Return the options of fsspec's file system of web servers; none for another address.

    Some servers call a file that is stored compressed a compressed answer: if it has that name, it stays as it is.
    """
    if not _is_on_the_web(address):
        return {}
    timeout = import_optional("aiohttp").ClientTimeout(
        total=None, sock_connect=SECONDS_OF_SILENCE, sock_read=SECONDS_OF_SILENCE
    )
    compressed = _name_on_the_web(address).lower().endswith(COMPRESSED)
    return {"headers": UNCHANGED, "client_kwargs": {"timeout": timeout, "auto_decompress": not compressed}}


def reason(error: BaseException) -> str:
    """Return the message of an error on one line; its kind if it has none."""
    return (" ".join(str(error).split()) or type(error).__name__)[:MAX_REASON_CHARACTERS]
