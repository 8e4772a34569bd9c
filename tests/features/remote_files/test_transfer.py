"""Transfers from a file system with faults."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import UserError
from nmt.features.remote_files import transfer
from nmt.features.remote_files.remote import UNKNOWN_SIZE, Remote, Version
from nmt.features.remote_files.transfer import download, persist, upload

CONTENT = bytes(range(256)) * 40
BLOCK = 1000


class FaultyFile(io.BytesIO):
    """Raises an error after some bytes, or ends there."""

    def __init__(self, content: bytes, fault: Exception | None, after: int, *, can_seek: bool) -> None:
        super().__init__(content)
        self._fault, self._left, self._can_seek = fault, after, can_seek

    def seekable(self) -> bool:
        return self._can_seek

    def read(self, size: int | None = -1) -> bytes:
        if self._left <= 0:
            if self._fault:
                raise self._fault
            return b""
        found = super().read(min(size or -1, self._left))
        self._left -= len(found)
        return found


class FaultySystem:
    """A file system with one file; each opening meets the next fault."""

    def __init__(
        self, *faults: tuple[Exception | None, int], size: int | None = len(CONTENT), can_seek: bool = True
    ) -> None:
        self._faults: Iterator[tuple[Exception | None, int]] = iter(faults)
        self._can_seek = can_seek
        self.information: dict[str, Any] = {"size": size, "ETag": "1", "type": "file"}
        self.opened = 0
        self.stored: list[bytes] = []

    def invalidate_cache(self) -> None:
        pass

    def info(self, path: str) -> dict[str, Any]:
        return self.information

    def open(self, path: str, mode: str, **_: object) -> FaultyFile:
        self.opened += 1
        fault, after = next(self._faults, (None, len(CONTENT)))
        return FaultyFile(CONTENT, fault, after, can_seek=self._can_seek)

    def put_file(self, file: str, path: str) -> None:
        self.stored.append(Path(file).read_bytes())
        fault, after = next(self._faults, (None, len(CONTENT)))
        self.information["size"] = after
        if fault:
            raise fault


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "BLOCK_BYTES", BLOCK)


def remote(system: FaultySystem) -> Remote:
    return Remote("s3://bucket/file", "data.train", system, "bucket/file")


def fetched(system: FaultySystem, folder: Path) -> bytes:
    file = remote(system)
    download(file, file.version(), folder / "partial")
    return (folder / "partial").read_bytes()


@pytest.mark.parametrize("can_seek", [True, False])
@pytest.mark.parametrize("fault", [OSError("connection reset"), TimeoutError(), None])
def test_a_transfer_goes_on_after_faults(tmp_path: Path, fault: Exception | None, can_seek: bool) -> None:
    system = FaultySystem(*((fault, after) for after in (2500, 0, 700, 3000)), can_seek=can_seek)
    assert fetched(system, tmp_path) == CONTENT
    assert system.opened == 5


def test_bytes_that_have_arrived_are_not_fetched_again(tmp_path: Path) -> None:
    system = FaultySystem(*((OSError("cut"), 1000) for _ in range(9)), (OSError("cut"), 1240))
    assert fetched(system, tmp_path) == CONTENT
    assert system.opened == 10, "ten parts hold everything, so more attempts than WAITS may get something"


def test_attempts_that_get_nothing_come_to_an_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    system = FaultySystem(*((OSError("503 Slow Down"), 0) for _ in range(9)))
    with pytest.raises(UserError, match=r"cannot fetch s3://bucket/file \(503 Slow Down\): check the network and run"):
        fetched(system, tmp_path)
    assert system.opened == 1 + len(transfer.WAITS)
    assert capsys.readouterr().err.count("trying again in") == len(transfer.WAITS)


def test_an_interrupted_process_leaves_what_it_has_to_the_next_one(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        fetched(FaultySystem((KeyboardInterrupt(), 4000)), tmp_path)  # type: ignore[arg-type]
    assert fetched(FaultySystem((None, len(CONTENT) - 4000)), tmp_path) == CONTENT


def test_a_body_longer_than_its_size_begins_again(tmp_path: Path) -> None:
    system = FaultySystem(size=len(CONTENT) - 1)
    with pytest.raises(UserError, match=r"10,240 of 10,239 bytes arrived"):
        fetched(system, tmp_path)


def test_a_file_of_unknown_size_is_read_to_its_end(tmp_path: Path) -> None:
    system = FaultySystem(size=None)
    del system.information["ETag"]
    first, second = remote(system).version(), remote(system).version()
    assert first.size == UNKNOWN_SIZE
    assert first != second, "nothing tells whether the file is the same"
    assert fetched(system, tmp_path) == CONTENT


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    system = FaultySystem()
    with pytest.raises(UserError, match="changed while it was fetched: run the same command again"):
        download(remote(system), Version(len(CONTENT), {"ETag": "0"}), tmp_path / "partial")
    assert not (tmp_path / "partial").exists()


@pytest.mark.parametrize("mark", [{"lfs": {"sha256": "0" * 64}}, {"md5Hash": "AAAAAAAAAAAAAAAAAAAAAA=="}])
def test_a_checksum_of_the_server_is_compared(tmp_path: Path, mark: dict[str, object]) -> None:
    system = FaultySystem()
    system.information |= mark
    with pytest.raises(UserError, match="arrived damaged: its checksum is not the server's"):
        fetched(system, tmp_path)
    assert not (tmp_path / "partial").exists()


class WebError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


class NoCredentialsError(Exception):
    """The name of an error of botocore."""


@pytest.mark.parametrize(
    ("error", "complaint"),
    [
        (FileNotFoundError("The specified bucket does not exist"), "does not exist .*check the address and the bucket"),
        (PermissionError("Access Denied"), r"access is refused \(Access Denied\): check your credentials"),
        (OSError(22, "Bad Request"), "the request is refused .*have your credentials expired"),
        (NoCredentialsError("Unable to locate credentials"), "there are no valid credentials"),
        (WebError(401), "there are no valid credentials"),
        (WebError(410), "does not exist"),
        (WebError(451), "the server refuses the request"),
        (NotImplementedError(), "addresses of this kind cannot store files"),
    ],
)
def test_errors_that_will_not_pass_end_at_the_first_attempt(error: Exception, complaint: str) -> None:
    attempts = 0

    def action() -> None:
        nonlocal attempts
        attempts += 1
        raise error

    with pytest.raises(UserError, match=f"data.train=s3://bucket/file:? {complaint}"):
        persist(remote(FaultySystem()), action, "store")
    assert attempts == 1


def test_a_busy_server_is_asked_again() -> None:
    faults = iter([WebError(503), WebError(429), WebError(408)])

    def action() -> str:
        for fault in faults:
            raise fault
        return "done"

    assert persist(remote(FaultySystem()), action) == "done"


def test_storing_is_repeated_until_all_has_arrived(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    system = FaultySystem((OSError("cut"), 0), (None, 17))
    upload(tmp_path / "file", remote(system))
    assert system.stored == [CONTENT] * 3
