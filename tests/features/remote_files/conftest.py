"""Addresses with an empty cache, and no waiting between attempts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.config.folders import COPIES
from nmt.features.remote_files import addresses, transfer
from nmt.features.remote_files.addresses import FsspecAddresses
from nmt.features.remote_files.cache import FOLDER, LIMIT


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty cache."""
    monkeypatch.setenv(FOLDER, str(tmp_path / "cache"))
    monkeypatch.setenv(COPIES, str(tmp_path / "copies"))
    monkeypatch.delenv(LIMIT, raising=False)
    monkeypatch.delenv("NMT_INSTALL", raising=False)
    monkeypatch.setattr(addresses, "ADDRESSES", FsspecAddresses())
    monkeypatch.setattr(transfer, "WAITS", (0.0, 0.0, 0.0))
    return tmp_path / "cache"


@pytest.fixture
def memory() -> Iterator[Any]:
    """Yield the file system in memory, empty."""
    from fsspec.implementations.memory import MemoryFileSystem

    MemoryFileSystem.store.clear()
    yield MemoryFileSystem()
    MemoryFileSystem.store.clear()
