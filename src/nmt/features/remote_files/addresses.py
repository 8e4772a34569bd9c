"""Bring files at addresses here, through the cache, and write files to addresses."""

import shutil
from pathlib import Path

from nmt.features.remote_files.cache import Cache
from nmt.features.remote_files.folder import FsspecFolder
from nmt.features.remote_files.remote import Remote
from nmt.features.remote_files.transfer import download, persist, upload
from nmt.storage.files import replacing


class FsspecAddresses:
    """Addresses that fsspec reads; see `nmt.storage.addresses.Addresses`."""

    def __init__(self) -> None:
        """Start with nothing fetched."""
        self._fetched: dict[str, list[Path]] = {}
        self._cache: Cache | None = None

    def fetch(self, address: str, setting: str) -> list[Path]:
        """Return local copies of the files; the whole process reads the versions that it fetched first."""
        if address not in self._fetched:
            found = [Remote.at(address, setting)]
            if found[0].has_wildcards:
                found = persist(found[0], found[0].matches)
            self._fetched[address] = [self._local(each) for each in found]
        return self._fetched[address]

    def _local(self, remote: Remote) -> Path:
        """Return a local file with the content of one at an address."""
        if remote.local is not None:
            return remote.local
        if self._cache is None:
            self._cache = Cache.of_this_machine()
        version = persist(remote, remote.version)
        return self._cache.copy(
            remote.address, version, remote.name, lambda partial: download(remote, version, partial)
        )

    def store(self, file: Path, address: str, setting: str) -> None:
        """Write a file to an address; object stores show it only once it is complete."""
        remote = Remote.at(address, setting)
        if remote.local is None:
            upload(file, remote)
            return
        with replacing(remote.local) as partial:
            shutil.copyfile(file, partial)

    def folder(self, address: str, setting: str) -> FsspecFolder:
        """Return the folder at an address."""
        return FsspecFolder(address, setting)


ADDRESSES = FsspecAddresses()
