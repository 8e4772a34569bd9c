"""A folder at an address, in memory, which can fail."""

import threading
from hashlib import sha256
from pathlib import Path

from nmt.errors import UserError


class MemoryFolder:
    """See `nmt.storage.addresses.RemoteFolder`; `failures` says how many further writes succeed before one fails."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self.writes_left = -1
        self._lock = threading.Lock()

    def _count_write(self) -> None:
        if self.writes_left == 0:
            raise UserError("cannot store: the connection is cut")
        self.writes_left -= 1

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def write(self, name: str, content: bytes) -> None:
        self._count_write()
        self.files[name] = content

    def create(self, name: str, content: bytes) -> bool:
        with self._lock:
            return self.files.setdefault(name, content) is content

    def fetch(self, name: str, file: Path) -> str:
        if name not in self.files:
            raise UserError(f"{name} does not exist")
        self.fetched.append(name)
        file.write_bytes(self.files[name])
        return sha256(self.files[name]).hexdigest()

    def store(self, file: Path, name: str) -> None:
        self._count_write()
        self.files[name] = file.read_bytes()

    def remove(self, name: str) -> None:
        self.files.pop(name, None)
