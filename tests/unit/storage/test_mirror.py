"""Copies of a folder at an address: whole or unchanged, with any writers and interruptions."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

from nmt.errors import UserError
from nmt.storage import lease, mirror
from nmt.storage.files import PARTIAL, seal
from nmt.storage.index import INDEX
from nmt.storage.mirror import Mirror, publish, publishing
from tests.unit.storage.remote_folders import MemoryFolder

ADDRESS = "memory://bucket/run"


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> MemoryFolder:
    folder = MemoryFolder()
    monkeypatch.setattr(mirror, "remote_folder", lambda address, setting: folder)
    monkeypatch.setattr(lease, "POLL_SECONDS", 0.001)
    return folder


def copy_in(folder: Path) -> Mirror:
    return Mirror(ADDRESS, folder, "paths.outputs")


def fill(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def content(folder: Path) -> dict[str, str]:
    files = (each for each in folder.rglob("*") if each.is_file() and not each.name.startswith("."))
    return {str(each.relative_to(folder)): each.read_text() for each in files}


def test_a_copy_elsewhere_becomes_the_same_with_its_links(remote: MemoryFolder, tmp_path: Path) -> None:
    a, b = copy_in(tmp_path / "a"), copy_in(tmp_path / "b")
    fill(a.folder, {"checkpoints/step-1/model": "weights", "metrics": "loss 1\n", ".hidden": "x", f"x{PARTIAL}": "x"})
    (a.folder / "checkpoints" / "last").symlink_to("step-1")
    a.push()
    b.pull()
    assert content(b.folder) == {"checkpoints/step-1/model": "weights", "metrics": "loss 1\n"}
    assert os.readlink(b.folder / "checkpoints" / "last") == "step-1"  # noqa: PTH115


def test_only_changes_are_stored_and_fetched_and_old_versions_are_deleted(remote: MemoryFolder, tmp_path: Path) -> None:
    a, b = copy_in(tmp_path / "a"), copy_in(tmp_path / "b")
    fill(a.folder, {"old": "1", "grown": "1", "same": "1"})
    a.push()
    b.pull()
    (a.folder / "old").unlink()
    fill(a.folder, {"grown": "12"})
    remote.fetched.clear()
    a.push()
    b.pull()
    assert content(b.folder) == {"grown": "12", "same": "1"}
    assert len(remote.fetched) == 1
    assert len(remote.files) == 3, "two files and the list"
    before = dict(remote.files)
    a.push()
    b.push()
    assert remote.files == before


def test_files_that_are_not_wanted_are_neither_fetched_nor_deleted_elsewhere(
    remote: MemoryFolder, tmp_path: Path
) -> None:
    a, b = copy_in(tmp_path / "a"), copy_in(tmp_path / "b")
    fill(a.folder, {"step-1/heavy": "w", "step-1/light": "m", "step-2/heavy": "w", "step-2/light": "m"})
    a.push()
    b.pull(lambda name: not name.endswith("heavy"))
    assert set(content(b.folder)) == {"step-1/light", "step-2/light"}
    fill(b.folder, {"eval": "30 BLEU"})
    b.push()
    a.pull()
    assert set(content(a.folder)) == {"step-1/heavy", "step-1/light", "step-2/heavy", "step-2/light", "eval"}


def test_a_folder_that_is_deleted_here_goes_with_the_files_that_never_came_here(
    remote: MemoryFolder, tmp_path: Path
) -> None:
    a, b = copy_in(tmp_path / "a"), copy_in(tmp_path / "b")
    fill(a.folder, {"step-1/heavy": "w", "step-1/light": "m", "step-2/light": "m"})
    a.push()
    b.pull(lambda name: not name.endswith("heavy"))
    (b.folder / "step-1" / "light").unlink()
    (b.folder / "step-1").rmdir()
    b.push()
    a.pull()
    assert set(content(a.folder)) == {"step-2/light"}
    assert len(remote.files) == 2


def test_a_folder_whose_files_are_all_deleted_at_the_address_vanishes_here(
    remote: MemoryFolder, tmp_path: Path
) -> None:
    a, b = copy_in(tmp_path / "a"), copy_in(tmp_path / "b")
    fill(a.folder, {"checkpoints/step-1/light": "m", "checkpoints/step-1/more/light": "m", "eval/test": "30 BLEU"})
    (a.folder / "checkpoints" / "last").symlink_to("step-1")
    a.push()
    b.pull()
    fill(b.folder, {"eval/own": "not stored yet"})
    shutil.rmtree(a.folder / "checkpoints")
    shutil.rmtree(a.folder / "eval")
    a.push()
    b.pull()
    assert [each.name for each in b.folder.iterdir() if each.is_dir()] == ["eval"]
    assert content(b.folder) == {"eval/own": "not stored yet"}
    shutil.rmtree(b.folder / "eval")
    b.pull()
    assert b.folder.is_dir()


def test_a_folder_that_is_empty_because_a_pull_was_interrupted_vanishes_with_the_next_one(
    remote: MemoryFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = copy_in(tmp_path / "a"), copy_in(tmp_path / "b")
    fill(a.folder, {"step-1/light": "m", "step-2/light": "m"})
    a.push()
    b.pull()
    shutil.rmtree(a.folder / "step-1")
    a.push()

    def interrupt(path: Path) -> None:
        path.unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(mirror, "remove", interrupt)
        with pytest.raises(KeyboardInterrupt):
            b.pull()
    assert (b.folder / "step-1").is_dir()
    b.pull()
    assert [each.name for each in b.folder.iterdir() if each.is_dir()] == ["step-2"]


@pytest.mark.parametrize("writes", range(5))
def test_an_interrupted_push_changes_nothing_and_the_next_one_goes_on(
    remote: MemoryFolder, tmp_path: Path, writes: int
) -> None:
    a, b = copy_in(tmp_path / "a"), copy_in(tmp_path / "b")
    fill(a.folder, {"x": "1", "y": "1", "z": "1"})
    a.push()
    fill(a.folder, {"x": "2", "y": "2", "z": "2"})
    remote.writes_left = writes
    if writes < 4:  # three files and the list
        with pytest.raises(UserError, match="the connection is cut"):
            a.push()
        remote.writes_left = -1
        b.pull()
        assert content(b.folder) == {"x": "1", "y": "1", "z": "1"}
    a.push()
    b.pull()
    assert content(b.folder) == {"x": "2", "y": "2", "z": "2"}


def test_changes_of_two_writers_are_joined_and_the_address_wins_where_they_differ(
    remote: MemoryFolder, tmp_path: Path
) -> None:
    a, b = copy_in(tmp_path / "a"), copy_in(tmp_path / "b")
    fill(a.folder, {"both": "0"})
    a.push()
    b.pull()
    fill(a.folder, {"both": "a", "of a": "1"})
    fill(b.folder, {"both": "b", "of b": "1"})
    a.push()
    fill(b.folder, {"only here": "1"})
    b.pull()
    assert content(b.folder) == {"both": "a", "of a": "1", "of b": "1", "only here": "1"}
    b.push()
    a.pull()
    assert content(a.folder) == content(b.folder)


def test_a_file_that_is_replaced_while_it_is_fetched_is_taken_from_the_new_list(
    remote: MemoryFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = copy_in(tmp_path / "a"), copy_in(tmp_path / "b")
    fill(a.folder, {"x": "1"})
    a.push()
    fetch = remote.fetch

    def replaced_meanwhile(name: str, file: Path) -> str:
        if content(a.folder) == {"x": "1"}:
            fill(a.folder, {"x": "2"})
            a.push()
        return fetch(name, file)

    monkeypatch.setattr(remote, "fetch", replaced_meanwhile)
    b.pull()
    assert content(b.folder) == {"x": "2"}


def test_a_damaged_file_is_refused_and_not_taken(remote: MemoryFolder, tmp_path: Path) -> None:
    a, b = copy_in(tmp_path / "a"), copy_in(tmp_path / "b")
    fill(a.folder, {"x": "1"})
    a.push()
    (stored,) = (name for name in remote.files if name != INDEX)
    remote.files[stored] = b"2"
    with pytest.raises(UserError, match=r"memory://bucket/run/x\.[0-9a-f]+ is damaged: its checksum is another one"):
        b.pull()
    assert content(b.folder) == {}


@pytest.mark.parametrize(
    "files",
    [
        {"../x": ["0" * 64, 1, ""]},
        {"/etc/x": ["0" * 64, 1, ""]},
        {"x": ["", 0, "../y"]},
        {"x": ["", 0, "/etc"]},
        {"x": [1, "0", ""]},
        {"x": None},
        [],
    ],
)
def test_a_list_that_leads_out_of_its_folder_is_refused(remote: MemoryFolder, tmp_path: Path, files: object) -> None:
    found = {"format": 1, "files": files}
    remote.files[INDEX] = json.dumps({**found, "seal": seal(found)}).encode()
    with pytest.raises(UserError, match="is damaged, or nmt has not written it: choose another address"):
        copy_in(tmp_path / "a").pull()


def test_a_damaged_list_is_refused(remote: MemoryFolder, tmp_path: Path) -> None:
    fill(tmp_path / "a", {"x": "1"})
    copy_in(tmp_path / "a").push()
    for damaged in (b"", b"{", remote.files[INDEX].replace(b'"x"', b'"y"')):
        remote.files[INDEX] = damaged
        with pytest.raises(UserError, match="is damaged"):
            copy_in(tmp_path / "b").pull()


def test_a_copy_without_a_record_fetches_only_what_differs(remote: MemoryFolder, tmp_path: Path) -> None:
    a = copy_in(tmp_path / "a")
    fill(a.folder, {"x": "1", "y": "1"})
    a.push()
    (a.folder / mirror.STATE).write_text("damaged")
    fill(a.folder, {"y": "changed"})
    a.pull()
    assert content(a.folder) == {"x": "1", "y": "1"}
    assert len(remote.fetched) == 1


def test_publishing_stores_at_each_call_and_at_the_end_also_after_errors(remote: MemoryFolder, tmp_path: Path) -> None:
    a, b = copy_in(tmp_path / "a"), copy_in(tmp_path / "b")
    with publishing(a):
        fill(a.folder, {"x": "1"})
        publish(a.folder)
        b.pull()
        assert content(b.folder) == {"x": "1"}
        fill(a.folder, {"x": "2"})

    def stopped() -> None:
        with publishing(a):
            fill(a.folder, {"y": "1"})
            raise SystemExit(143)

    with pytest.raises(SystemExit):
        stopped()
    publish(a.folder)
    b.pull()
    assert content(b.folder) == {"x": "2", "y": "1"}


def test_a_failure_to_store_is_a_warning_until_the_end(
    remote: MemoryFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = copy_in(tmp_path / "a")
    remote.writes_left = 0

    def work() -> None:
        with publishing(a):
            fill(a.folder, {"x": "1"})
            publish(a.folder)
            assert "warning: cannot store: the connection is cut; what is in" in capsys.readouterr().err

    with pytest.raises(UserError, match="the connection is cut"):
        work()
    remote.writes_left = -1
    with publishing(a):
        pass
    assert INDEX in remote.files


def test_a_full_disk_here_is_a_warning_until_the_end(
    remote: MemoryFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "copy")

    a = copy_in(tmp_path / "a")
    with publishing(a):
        fill(a.folder, {"x": "1"})
        with monkeypatch.context() as patched:
            patched.setattr(shutil, "copyfile", full)
            publish(a.folder)
        (warning,) = capsys.readouterr().err.splitlines()
        assert "No space left on device" in warning
        assert warning.endswith(f"; what is in {a.folder} is stored later")
    assert INDEX in remote.files


def test_nothing_is_written_to_an_address_that_another_process_has_taken_over(
    remote: MemoryFolder, tmp_path: Path
) -> None:
    a = copy_in(tmp_path / "a")

    def work() -> None:
        with a.owned("is being trained"), publishing(a):
            remote.files[mirror.OWNER] = b'{"owner": "somebody else", "token": "x"}'
            fill(a.folder, {"x": "1"})
            publish(a.folder)

    with pytest.raises(lease.LostLeaseError, match="run the same command"):
        work()
    assert INDEX not in remote.files
    assert b"somebody else" in remote.files[mirror.OWNER], "the lease of others stays"
