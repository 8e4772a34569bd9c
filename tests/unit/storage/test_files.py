"""Files and folders appear completely or not at all, and nothing is left next to them."""

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from nmt.errors import UserError
from nmt.storage import files
from nmt.storage.files import (
    PARTIAL,
    checksum,
    checksums,
    is_plain_name,
    link,
    read_json,
    remove,
    remove_abandoned,
    remove_folder,
    replacing,
    replacing_folder,
    seal,
    write_json,
    write_text,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill(path: Path, text: str) -> None:
    with replacing_folder(path) as partial:
        (partial / "file").write_text(text)


def test_a_folder_replaces_another(tmp_path: Path) -> None:
    fill(tmp_path / "made", "old")
    fill(tmp_path / "made", "new")
    assert (tmp_path / "made" / "file").read_text() == "new"
    assert names(tmp_path) == ["made"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_two_writers_do_not_touch_what_the_other_one_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:  # as on a system without the operation
        monkeypatch.setattr(files, "exchange", lambda first, second: False)
    with replacing_folder(tmp_path / "made") as slow, replacing(tmp_path / "file") as slow_file:
        (slow / "file").write_text("slow")
        slow_file.write_text("slow")
        fill(tmp_path / "made", "fast")
        write_text(tmp_path / "file", "fast")
        assert (tmp_path / "made" / "file").read_text() == (tmp_path / "file").read_text() == "fast"
        (slow / "last").touch()
    assert names(tmp_path / "made") == ["file", "last"]
    assert (tmp_path / "made" / "file").read_text() == (tmp_path / "file").read_text() == "slow"
    assert names(tmp_path) == ["file", "made"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs an operation of Linux")
def test_a_folder_that_is_replaced_is_there_all_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "made", "old")
    monkeypatch.setattr(Path, "replace", None)  # it would need two renames
    fill(tmp_path / "made", "new")
    assert (tmp_path / "made" / "file").read_text() == "new"


def test_what_cannot_be_replaced_is_back_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "made", "old")
    rename, renamed = Path.replace, []

    def fail_once(path: Path, target: Path) -> Path:
        renamed.append(path.name)
        if len(renamed) == 2:
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", fail_once)
    monkeypatch.setattr(files, "exchange", lambda first, second: False)
    with pytest.raises(UserError, match="Input/output error"):
        fill(tmp_path / "made", "new")
    assert (tmp_path / "made" / "file").read_text() == "old"
    assert names(tmp_path) == ["made"]


def test_content_reaches_the_disk_before_its_name_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[object] = []
    rename = Path.replace

    def replace(path: Path, target: Path) -> Path:
        events.append("named")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", lambda descriptor: events.append(os.fstat(descriptor).st_ino))
    monkeypatch.setattr(Path, "replace", replace)
    folder = tmp_path / "new" / "folders"
    write_text(folder / "file", "text")
    assert events == [(folder / "file").stat().st_ino, "named", folder.stat().st_ino]
    events.clear()
    fill(folder / "made", "text")
    files_first = [(folder / "made" / "file").stat().st_ino, (folder / "made").stat().st_ino]
    assert events == [*files_first, "named", folder.stat().st_ino]
    events.clear()
    with replacing_folder(folder / "deep") as partial:
        (partial / "below").mkdir()
        (partial / "below" / "file").touch()
    assert (folder / "deep" / "below" / "file").stat().st_ino in events[: events.index("named")]


KILLED = """
import os, sys
from pathlib import Path
from nmt.storage import files
way, path, nested = getattr(files, sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "nested"
with way(path) as partial:
    if nested:
        with way(partial):
            os._exit(9)
    os._exit(9)
"""


@pytest.mark.parametrize("depth", ["plain", "nested"])
@pytest.mark.parametrize("way", ["replacing", "replacing_folder"])
def test_the_next_writer_removes_the_temporary_files_of_a_killed_one(tmp_path: Path, way: str, depth: str) -> None:
    path = tmp_path / "made"
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", KILLED, way, str(path), depth], check=False).returncode == 9
    assert len(list(tmp_path.glob(f"made*{PARTIAL}"))) == (2 if depth == "nested" else 1)
    (tmp_path / f"made.else{PARTIAL}").touch()
    with getattr(files, way)(path):
        pass
    assert names(tmp_path) == ["made", f"made.else{PARTIAL}"]


def plant(folder: Path, name: str) -> None:
    """Put links to a file of somebody else where an earlier version wrote."""
    (folder / "victim").write_text("precious")
    (folder / name).symlink_to("victim")


def write_all_ways(folder: Path) -> None:
    write_text(folder / "file", "new")
    fill(folder / "folder", "new")
    fill(folder / "folder", "newer")
    link(folder / "link", "file")


def test_planted_links_are_not_followed(tmp_path: Path) -> None:
    for name in ("file.partial", "folder.partial", "folder.old.partial", "link.partial"):
        plant(tmp_path, name)
    write_all_ways(tmp_path)
    assert (tmp_path / "victim").read_text() == "precious"
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "folder" / "file").read_text() == "newer"
    assert (tmp_path / "link").readlink() == Path("file")


def test_files_have_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_all_ways(tmp_path)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o750


def test_weights_in_a_folder_can_be_read_by_those_who_may_read_the_folder(tmp_path: Path) -> None:
    with replacing_folder(tmp_path / "made") as partial:
        save_file({"weights": torch.ones(2)}, partial / "model.safetensors")  # which only its owner may read
        (partial / "plain").touch()
    weights, plain = ((tmp_path / "made" / name).stat().st_mode for name in ("model.safetensors", "plain"))
    assert weights == plain


@pytest.mark.parametrize("way", [replacing, replacing_folder])
def test_a_failed_write_leaves_what_was_there(
    tmp_path: Path, way: Callable[[Path], AbstractContextManager[Path]]
) -> None:
    fill(tmp_path / "made", "old")
    with pytest.raises(UserError, match="No space left"), way(tmp_path / "made"):
        raise OSError(28, "No space left on device")
    assert (tmp_path / "made" / "file").read_text() == "old"
    assert names(tmp_path) == ["made"]


OTHER_ERRORS = [
    OSError("the engine cannot be loaded"),
    FileNotFoundError(2, "No such file or directory", "weights"),
    BrokenPipeError(32, "Broken pipe"),
]


@pytest.mark.parametrize("error", OTHER_ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("way", [replacing, replacing_folder])
def test_an_error_that_is_none_of_the_disk_passes_unchanged(
    tmp_path: Path, way: Callable[[Path], AbstractContextManager[Path]], error: OSError
) -> None:
    with pytest.raises(type(error), match=str(error.args[-1])) as caught, way(tmp_path / "made"):
        raise error
    assert caught.value is error
    assert names(tmp_path) == []


def test_a_file_that_cannot_be_made_in_a_folder_is_an_error_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write .*/made: No such file or directory"):  # noqa: SIM117
        with replacing_folder(tmp_path / "made") as partial:
            (partial / "none" / "file").touch()


def test_removing_a_folder_leaves_no_temporary_files(tmp_path: Path) -> None:
    fill(tmp_path / "made", "old")
    remove_folder(tmp_path / "made")
    assert names(tmp_path) == []


def test_remove_deletes_anything_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("kept")
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder" / "within").mkdir(parents=True)
    for name in ("link", "loop", "folder", "nothing"):
        remove(tmp_path / name)
    assert names(tmp_path) == ["kept"]
    assert names(tmp_path / "kept") == ["file"]


def test_json_is_written_for_readers_and_read_back(tmp_path: Path) -> None:
    value = {"name": "über", "steps": [1, 2]}
    write_json(tmp_path / "file.json", value)
    text = '{\n  "name": "über",\n  "steps": [\n    1,\n    2\n  ]\n}\n'
    assert (tmp_path / "file.json").read_text(encoding="utf-8") == text
    assert read_json(tmp_path / "file.json") == value


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
def test_damaged_json_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file.json").write_bytes(content)
    with pytest.raises(UserError, match=r"file\.json cannot be read as JSON: .*\. Delete it and run again\."):
        read_json(tmp_path / "file.json")
    with pytest.raises(UserError, match=r"none\.json cannot be read"):
        read_json(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("name", "plain"),
    [("a", True), ("a b.txt", True), ("...", True), ("", False), (".", False), ("..", False), ("a/b", False),
     ("/a", False), ("a\n", False), ("a\0", False)],
)  # fmt: skip
def test_plain_names_stay_in_their_folder(name: str, plain: bool) -> None:
    assert is_plain_name(name) is plain


def test_checksums_depend_on_the_content_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "b").write_bytes(b"")
    known = [  # FIPS 180-4
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ]
    assert checksums([tmp_path / "a", tmp_path / "b"]) == known
    assert checksum(tmp_path / "a") == known[0]
    assert seal({"a": 1, "b": 2}) == seal({"b": 2, "a": 1}) != seal({"a": 1, "b": 3})


@pytest.mark.parametrize("way", [replacing, replacing_folder])
def test_only_what_nobody_writes_is_abandoned(
    tmp_path: Path, way: Callable[[Path], AbstractContextManager[Path]]
) -> None:
    with way(tmp_path / "made") as partial:
        remove_abandoned(partial)
        assert partial.exists()
        renamed = partial.rename(tmp_path / "renamed")
        remove_abandoned(renamed)
        assert renamed.exists()
        renamed.rename(partial)
    remove_abandoned(tmp_path / "made")
    assert names(tmp_path) == []


def test_links_and_pipes_are_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")  # to open one waits for a writer, unless it is asked not to
    with replacing(tmp_path / "file"):
        remove_abandoned(tmp_path / "link")  # and not what it points to
        remove_abandoned(tmp_path / "pipe")
    assert names(tmp_path) == ["file"]
