"""The cache keeps to its limit, and no process loses a file that it uses."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import UserError
from nmt.features.remote_files.addresses import FsspecAddresses
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


@pytest.fixture
def shared() -> Iterator[Path]:
    """Yield a folder in which every user may make files."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@contextmanager
def another_user() -> Iterator[None]:
    """Give up the rights of root during this block."""
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_users_share_copies_and_keep_those_of_others(shared: Path) -> None:
    first = put(Cache(shared, 1_500), "a", 900)
    with another_user():
        assert put(Cache(shared, 1_500), "a", 900) == first
        with pytest.raises(UserError, match="does not fit"):
            put(Cache(shared, 1_500), "b", 900)
    assert first.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_an_incomplete_copy_of_another_user_is_an_error(shared: Path) -> None:
    def interrupt(partial: Path) -> str:
        partial.touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Cache(shared, 1_500).copy("s3://bucket/a", Version(9, {}), "a", interrupt)
    with another_user(), pytest.raises(UserError, match=r"cannot write to .*Permission denied.*name another folder"):
        put(Cache(shared, 1_500), "a", 9)


@pytest.fixture
def small_files() -> Iterator[None]:
    """Let no file grow beyond 100 kB, like those on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_a_full_disk_is_one_error_at_the_first_attempt(
    cache: Path, memory: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    memory.pipe_file("/file", b"x" * 1_000_000)
    with pytest.raises(UserError, match=rf"cannot write to {cache}: File too large. Free some space there, or name"):
        FsspecAddresses().fetch("memory://file", "data.train")
    assert "trying again" not in capsys.readouterr().err


def test_an_unwritable_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write to .*name another folder by NMT_CACHE"):
        put(Cache(tmp_path / "file" / "cache", 1_000), "a", 1)
