"""The files below an address."""

import errno
from dataclasses import dataclass
from pathlib import Path

from nmt.features.remote_files.remote import Remote
from nmt.features.remote_files.transfer import download, persist, upload
from nmt.storage.files import replacing

MISSING = (404, 410)
EXISTS = (409, 412)
"""Answers of servers that have a file already, or are just writing it."""


@dataclass(frozen=True, slots=True)
class FsspecFolder:
    """A folder that fsspec reads and writes; see `nmt.storage.addresses.RemoteFolder`."""

    address: str
    setting: str

    def _remote(self, name: str) -> Remote:
        return Remote.at(f"{self.address.rstrip('/')}/{name}", self.setting)

    def read(self, name: str) -> bytes | None:
        """See `RemoteFolder.read`."""
        remote = self._remote(name)

        def content() -> bytes | None:
            try:
                return bytes(remote.system.cat_file(remote.path))
            except FileNotFoundError:
                return None
            except Exception as error:  # of any kind: each file system raises its own
                if getattr(error, "status", None) in MISSING:
                    return None
                raise

        return persist(remote, content)

    def write(self, name: str, content: bytes) -> None:
        """See `RemoteFolder.write`."""
        remote = self._remote(name)

        def send() -> None:
            if remote.local is None:
                remote.system.pipe_file(remote.path, content)
                return
            with replacing(remote.local) as partial:
                partial.write_bytes(content)

        persist(remote, send, "store")

    def create(self, name: str, content: bytes) -> bool:
        """See `RemoteFolder.create`; an attempt whose answer was lost has written it if the content is there."""
        remote = self._remote(name)

        def send() -> bool:
            self._make_parent(remote)
            try:
                if remote.local is not None:
                    with remote.local.open("xb") as file:
                        file.write(content)
                else:
                    remote.system.pipe_file(remote.path, content, mode="create")
            except Exception as error:  # of any kind: each file system raises its own
                if not _exists_already(error):
                    raise
                return self.read(name) == content
            return True

        return persist(remote, send, "store")

    def fetch(self, name: str, file: Path) -> str:
        """See `RemoteFolder.fetch`."""
        remote = self._remote(name)
        return download(remote, persist(remote, remote.version), file)

    def store(self, file: Path, name: str) -> None:
        """See `RemoteFolder.store`."""
        remote = self._remote(name)
        self._make_parent(remote)
        upload(file, remote)

    def remove(self, name: str) -> None:
        """See `RemoteFolder.remove`."""
        remote = self._remote(name)

        def delete() -> None:
            try:
                remote.system.rm_file(remote.path)
            except FileNotFoundError:
                return

        persist(remote, delete, "delete")

    @staticmethod
    def _make_parent(remote: Remote) -> None:
        """Create the folder of a file on this machine; elsewhere, names with slashes need none."""
        if remote.local is not None:
            remote.local.parent.mkdir(parents=True, exist_ok=True)


def _exists_already(error: Exception) -> bool:
    """Return whether a file could not be created because there is one."""
    status = getattr(error, "status", None) or getattr(error, "status_code", None)
    refused = isinstance(error, OSError) and error.errno == errno.EINVAL and "condition" in str(error).lower()
    return isinstance(error, FileExistsError) or status in EXISTS or refused
