"""Files and folders appear completely or not at all, and nothing is left next to them."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from nmt.errors import UserError
from nmt.storage.files import (
    PARTIAL,
    exclusive_folder,
    is_plain_name,
    read_json,
    remove,
    replacing,
    write_json,
    write_text,
)

Way = Callable[[Path], AbstractContextManager[Path]]
both_ways = pytest.mark.parametrize("way", [replacing, partial(replacing, is_folder=True)])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill(path: Path, text: str) -> None:
    with replacing(path, is_folder=True) as partial:
        (partial / "file").write_text(text)


@both_ways
def test_a_second_writer_is_refused_and_leaves_the_first_alone(tmp_path: Path, way: Way) -> None:
    with way(tmp_path / "made"):
        with pytest.raises(UserError, match=r"made\.partial is being written by"), way(tmp_path / "made"):
            pass
        assert names(tmp_path) == [f"made{PARTIAL}"]
    assert names(tmp_path) == ["made"]


def test_a_folder_is_replaced(tmp_path: Path) -> None:
    for content in ("old", "new"):
        fill(tmp_path / "made", content)
        assert (tmp_path / "made" / "file").read_text() == content
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
    with replacing(folder / "made", is_folder=True) as partial:
        (partial / "below").mkdir()
        (partial / "below" / "file").touch()
    written = [folder / "made" / name for name in ("below", "below/file", ".")]
    assert events == [*(each.stat().st_ino for each in written), "named", folder.stat().st_ino]


KILLED = """
import os, sys
from pathlib import Path
from nmt.storage.files import replacing
with replacing(Path(sys.argv[2]), is_folder=bool(sys.argv[1])) as partial:
    (partial / "half" if partial.is_dir() else partial).write_text("half")
    os._exit(9)
"""


@both_ways
def test_the_next_writer_removes_the_temporary_files_of_a_killed_one(tmp_path: Path, way: Way) -> None:
    path = tmp_path / "made"
    command = [sys.executable, "-c", KILLED, "" if way is replacing else "folder", str(path)]
    assert subprocess.run(command, check=False).returncode == 9
    assert names(tmp_path) == [f"made{PARTIAL}"]
    with way(path) as partial:
        assert not (list(partial.iterdir()) if partial.is_dir() else partial.read_text())
    assert names(tmp_path) == ["made"]


def test_files_have_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "file", "new")
        with replacing(tmp_path / "folder", is_folder=True) as partial:
            save_file({"weights": torch.ones(2)}, partial / "weights")  # which only its owner may read
    finally:
        os.umask(before)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("file", "folder", "folder/weights")]
    assert modes == [0o640, 0o750, 0o640]


@both_ways
def test_a_failed_write_leaves_what_was_there(tmp_path: Path, way: Way) -> None:
    fill(tmp_path / "made", "old")
    with pytest.raises(UserError, match=r"cannot write .*/made: No space left"), way(tmp_path / "made"):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(UserError, match=r"cannot write .*/made: No such file"), way(tmp_path / "made") as partial:
        (partial.parent / f"{partial.name}/none/file").touch() if partial.is_dir() else partial.unlink()
    assert (tmp_path / "made" / "file").read_text() == "old"
    assert names(tmp_path) == ["made"]


def test_a_folder_that_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "made", "old")
    rename = Path.replace

    def broken(self: Path, target: Path) -> Path:
        if self.name == f"made{PARTIAL}" and target.name == "made":
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(UserError, match="what was there before is untouched"):
        fill(tmp_path / "made", "new")
    assert (tmp_path / "made" / "file").read_text() == "old"
    assert names(tmp_path) == ["made"]


def test_an_error_that_is_none_of_the_disk_passes_unchanged(tmp_path: Path) -> None:
    for error in (OSError("no engine"), FileNotFoundError(2, "No such file", "weights")):
        with pytest.raises(type(error)) as caught, replacing(tmp_path / "made"):
            raise error
        assert caught.value is error
    assert names(tmp_path) == []


def test_plain_names_stay_in_their_folder() -> None:
    assert all(map(is_plain_name, ["a", "a b.txt", "..."]))
    assert not any(map(is_plain_name, ["", ".", "..", "a/b", "/a", "a\n", "a\0"]))


def test_remove_deletes_anything_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("kept")
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder" / "within").mkdir(parents=True)
    for name in ("link", "loop", "folder", "nothing"):
        remove(tmp_path / name)
    assert (names(tmp_path), names(tmp_path / "kept")) == (["kept"], ["file"])


def test_json_is_written_for_readers_and_read_back(tmp_path: Path) -> None:
    file, value = tmp_path / "file.json", {"name": "über", "steps": [1, 2]}
    write_json(file, value)
    text = '{\n  "name": "über",\n  "steps": [\n    1,\n    2\n  ]\n}\n'
    assert file.read_text(encoding="utf-8") == text
    assert read_json(file) == value
    for damaged in (b"", b"{", b"\xff", b"[" * 100_000):
        file.write_bytes(damaged)
        with pytest.raises(UserError, match=r"file\.json cannot be read as JSON: .*\. Delete it and run again\."):
            read_json(file)


def test_a_folder_that_cannot_be_made_is_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(UserError, match=r"file/run: Not a directory\. Choose another with paths\.outputs\.$"),
        exclusive_folder(tmp_path / "file" / "run", taken="", setting="paths.outputs"),
    ):
        pass
