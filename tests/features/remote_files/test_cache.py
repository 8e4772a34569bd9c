"""The cache keeps to its limit, and no process loses a file that it uses."""

import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.features.remote_files.cache import Cache
from nmt.features.remote_files.remote import Version


def fetching(content: bytes) -> Callable[[Path], str]:
    def fetch(partial: Path) -> str:
        partial.write_bytes(content)
        return sha256(content).hexdigest()

    return fetch


def put(cache: Cache, name: str, size: int) -> Path:
    return cache.copy(f"s3://bucket/{name}", Version(size, {}), name, fetching(b"x" * size))


def names(folder: Path) -> set[str]:
    return {file.name for file in folder.glob("*/*") if file.suffix != ".json"}


def test_what_was_not_used_for_the_longest_time_is_removed_first(cache: Path) -> None:
    limit = 2_000  # with the records
    for name in ("a", "b", "c"):
        put(Cache(cache, 10_000), name, 400)
    put(Cache(cache, 10_000), "a", 400)
    put(Cache(cache, limit), "d", 400)
    assert {"a", "d"} <= names(cache)
    assert "b" not in names(cache)


def test_what_a_process_uses_stays_and_too_much_is_refused(cache: Path) -> None:
    mine = Cache(cache, 1_500)
    first = put(mine, "a", 900)
    with pytest.raises(UserError, match=r"s3://bucket/b does not fit into the cache .*raise it by NMT_CACHE_GB"):
        put(mine, "b", 900)
    assert first.read_bytes() == b"x" * 900
    with pytest.raises(UserError, match="does not fit"):
        put(Cache(cache, 1_500), "b", 900)
    assert first.exists(), "another process uses it"


def test_a_copy_that_ended_processes_used_can_be_removed(cache: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from nmt.features.remote_files.cache import Cache;"
        "from nmt.features.remote_files.remote import Version; from hashlib import sha256;"
        "fetch = lambda file: file.write_bytes(b'x' * 900) and sha256(b'x' * 900).hexdigest();"
        "Cache(Path(sys.argv[1]), 1500).copy('s3://bucket/a', Version(900, {}), 'a', fetch)"
    )
    subprocess.run([sys.executable, "-c", program, str(cache)], check=True, timeout=60)
    assert names(cache) == {"a"}
    put(Cache(cache, 1_500), "b", 900)
    assert names(cache) == {"b"}


def test_an_unwritable_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write to .*Name another folder by NMT_CACHE"):
        put(Cache(tmp_path / "file" / "cache", 1_000), "a", 1)
