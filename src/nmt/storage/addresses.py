"""Files elsewhere, named by addresses such as s3://bucket/corpus.en.gz: a feature brings them here and back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from nmt.config.folders import expanded, is_address
from nmt.discovery import features, imported
from nmt.errors import UserError
from nmt.storage.files import replacing


class Addresses(Protocol):
    """What a feature does with addresses; errors name the setting that gives one."""

    def fetch(self, address: str, setting: str) -> list[Path]:
        """Return local copies of the file at an address, or of all files that it matches if it has wildcards.

        The copies stay there while this process runs.
        """

    def store(self, file: Path, address: str, setting: str) -> None:
        """Write a file to an address, completely or not at all."""

    def folder(self, address: str, setting: str) -> "RemoteFolder":
        """Return the folder at an address, whether there are files in it or not."""


class RemoteFolder(Protocol):
    """The files below an address, by their names there, such as checkpoints/last."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a small file; None if there is no such file."""

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, completely or not at all."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a small file unless there is one; return whether it was written.

        Of several processes that create the same file, one is told so, if the file system can do that.
        """

    def fetch(self, name: str, file: Path) -> str:
        """Copy a file to a path, which is new or holds the beginning of the same file; return its SHA-256."""

    def store(self, file: Path, name: str) -> None:
        """Write a file, completely or not at all."""

    def remove(self, name: str) -> None:
        """Delete a file if there is one."""


def local_files(name: str, setting: str) -> list[Path]:
    """Return the files that a name means: the one at a path, or local copies of those at an address."""
    return _addresses(name, setting).fetch(name, setting) if is_address(name) else [expanded(name)]


def local_file(name: str, setting: str) -> Path:
    """Return the one file that a name means."""
    found = local_files(name, setting)
    if len(found) != 1:
        raise UserError(f"{setting}={name} matches {len(found)} files: name one")
    return found[0]


@contextmanager
def replacing_named(name: str, setting: str) -> Iterator[Path]:
    """Yield a temporary path to write a file to, which appears at a path or an address if the block succeeds."""
    if is_address(name):
        addresses = _addresses(name, setting)
        with TemporaryDirectory(prefix="nmt-") as folder:
            file = Path(folder) / "file"
            yield file
            addresses.store(file, name, setting)
        return
    path = expanded(name).resolve()  # a link stays one, and its target is replaced
    if path.is_dir():
        raise UserError(f"{setting}={name} is a folder: name a file")
    with replacing(path) as partial:
        yield partial


def remote_folder(address: str, setting: str) -> RemoteFolder:
    """Return the folder at an address that a setting names."""
    return _addresses(address, setting).folder(address, setting)


def _addresses(name: str, setting: str) -> Addresses:
    code = next((each.addresses for each in features().values() if each.addresses), None)
    if code is None:
        raise UserError(f"{setting}={name} is an address, and no feature reads addresses: name a local file")
    found: Addresses = imported(code)
    return found
