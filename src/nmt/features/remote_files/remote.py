"""A file in a remote file system: what fsspec knows about it, and errors in words."""

import errno
import secrets
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from nmt.compute.packages import import_optional
from nmt.errors import UserError, nearest

PACKAGES_OF_FSSPEC = {"http": "aiohttp", "https": "aiohttp"}
"""Packages that file systems of fsspec itself need, by the kind of address."""
MARKS = ("ETag", "etag", "md5Hash", "Content-MD5", "generation", "blob_id", "LastModified", "Last-Modified", "created")
"""What tells versions of a file apart, in the words of several file systems."""
UNKNOWN_SIZE = -1
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
            system, path = url_to_fs(address, use_listings_cache=False)
        except (ImportError, ValueError, OSError) as error:
            raise UserError(f"{setting}={address} cannot be used ({reason(error)}): check the address") from error
        return cls(address, setting, system, path)

    @property
    def is_on_the_web(self) -> bool:
        """Whether it is on a web server, which takes no files and lists none."""
        return self.address.lower().startswith(("http://", "https://"))

    @property
    def local(self) -> Path | None:
        """The path of a file on this machine, which needs no copy; None if it is elsewhere."""
        return Path(self.path) if self.address.lower().startswith(("file://", "local://")) else None

    @property
    def name(self) -> str:
        """The name of the file, whose ending tells its format."""
        return PurePosixPath(urlsplit(self.address).path if self.is_on_the_web else self.path).name

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
        """Ask for the present version; a file without size or date has a new one each time."""
        self.system.invalidate_cache()
        info = self.system.info(self.path)
        if info.get("type") == "directory":
            raise IsADirectoryError(self.address)
        size = UNKNOWN_SIZE if info.get("size") is None else int(info["size"])
        marks = {mark: str(info[mark]) for mark in MARKS if info.get(mark)}
        if sha256 := (info.get("lfs") or {}).get("sha256"):
            marks["sha256"] = sha256
        if size == UNKNOWN_SIZE and not marks:
            marks["asked"] = secrets.token_hex()
        return Version(size, marks)

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
        elif isinstance(error, PermissionError):
            found = f": access is refused ({why}): check your credentials and what they allow"
        elif isinstance(error, NotImplementedError):
            found = f": addresses of this kind cannot {doing} files: choose another kind"
        elif isinstance(error, OSError) and error.errno == errno.EINVAL:
            found = f": the request is refused ({why}): have your credentials expired?"
        elif type(error).__name__ in NO_CREDENTIALS or status == 401:
            found = f": there are no valid credentials ({why}): log in, or set them in the environment"
        elif isinstance(status, int) and 400 <= status < 500 and status not in PASSING:
            found = f": the server refuses the request ({why}): check the address and your credentials"
        return found


def reason(error: BaseException) -> str:
    """Return the message of an error on one line; its kind if it has none."""
    return (" ".join(str(error).split()) or type(error).__name__)[:MAX_REASON_CHARACTERS]
