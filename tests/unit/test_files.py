"""Files and folders that are whole or not there, and nothing beside them."""

from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.files import remove, remove_folder, replacing, replacing_folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill(path: Path, text: str) -> None:
    with replacing_folder(path) as partial:
        (partial / "file").write_text(text)


def test_a_folder_takes_the_place_of_another(tmp_path: Path) -> None:
    fill(tmp_path / "made", "old")
    fill(tmp_path / "made", "new")
    assert (tmp_path / "made" / "file").read_text() == "new"
    assert names(tmp_path) == ["made"]


@pytest.mark.parametrize("leftovers", [["made.partial"], ["made.old.partial"], ["made.partial", "made.old.partial"]])
def test_what_a_kill_left_behind_goes_with_the_next(tmp_path: Path, leftovers: list[str]) -> None:
    for leftover in leftovers:
        (tmp_path / leftover).mkdir()
        (tmp_path / leftover / "file").write_text("unfinished")
    fill(tmp_path / "made", "new")
    assert (tmp_path / "made" / "file").read_text() == "new"
    assert names(tmp_path) == ["made"]


def fail_in_a_folder(path: Path) -> None:
    with replacing_folder(path) as partial:
        (partial / "file").write_text("new")
        raise OSError(28, "No space left on device")


def fail_in_a_file(path: Path) -> None:
    with replacing(path) as partial:
        partial.write_text("new")
        raise OSError(28, "No space left on device")


def test_a_failure_leaves_a_folder_as_it_was(tmp_path: Path) -> None:
    fill(tmp_path / "made", "old")
    with pytest.raises(UserError, match="No space left"):
        fail_in_a_folder(tmp_path / "made")
    assert (tmp_path / "made" / "file").read_text() == "old"
    assert names(tmp_path) == ["made"]


def test_a_failure_leaves_a_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(UserError, match="No space left"):
        fail_in_a_file(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "old"
    assert names(tmp_path) == ["file"]


def test_removing_leaves_nothing(tmp_path: Path) -> None:
    fill(tmp_path / "made", "old")
    remove_folder(tmp_path / "made")
    assert names(tmp_path) == []


def test_removing_takes_what_there_is_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("kept")
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "folder" / "within").mkdir(parents=True)
    for name in ("link", "loop", "folder", "nothing"):
        remove(tmp_path / name)
    assert names(tmp_path) == ["kept"]
    assert names(tmp_path / "kept") == ["file"]


def test_what_cannot_be_removed_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    (tmp_path / "file").touch()
    monkeypatch.setattr("os.unlink", refuse)
    with pytest.raises(UserError, match=r"cannot delete .*/file: Read-only file system"):
        remove(tmp_path / "file")
