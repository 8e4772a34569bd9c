"""The file system in memory, with an empty cache here."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.config.folders import CACHE
from nmt.storage import remote


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty cache."""
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))
    monkeypatch.delenv("NMT_INSTALL", raising=False)
    remote._copies.cache_clear()
    return tmp_path / "cache"


@pytest.fixture
def memory() -> Iterator[Any]:
    """Yield the file system in memory, empty."""
    from fsspec.implementations.memory import MemoryFileSystem

    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    yield MemoryFileSystem()
    MemoryFileSystem.store.clear()
