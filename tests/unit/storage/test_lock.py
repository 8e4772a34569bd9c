"""Only one process at a time works in a folder."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from nmt.errors import UserError
from nmt.storage.lock import exclusive_folder, take


def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    program = (
        "from pathlib import Path; from nmt.storage.lock import exclusive_folder\n"
        f"with exclusive_folder(Path({str(folder)!r}), taken='is taken.', setting='x'): pass"
    )
    with exclusive_folder(folder, taken="is taken.", setting="x"):
        refused = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        with pytest.raises(UserError, match="run is taken"), exclusive_folder(folder, taken="is taken.", setting="x"):
            pass
    assert "UserError" in refused.stderr
    assert f"{folder} is taken." in refused.stderr
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_writable_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with (
        pytest.raises(UserError, match=r"Choose another with paths\.outputs"),
        exclusive_folder(tmp_path / "run", taken="", setting="paths.outputs"),
    ):
        pass


def test_a_folder_that_cannot_be_made_is_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(UserError, match=r"file/run: Not a directory\. Choose another with paths\.outputs\.$"),
        exclusive_folder(tmp_path / "file" / "run", taken="", setting="paths.outputs"),
    ):
        pass


def test_a_process_that_may_wait_says_so_and_begins_after_the_other_one(tmp_path: Path) -> None:
    events = list[str]()

    def second() -> None:
        with exclusive_folder(tmp_path, taken="is taken.", setting="x", wait=events.append):
            events.append("second")

    with exclusive_folder(tmp_path, taken="is taken.", setting="x"):
        thread = Thread(target=second)
        thread.start()
        thread.join(0.5)
        assert events == [f"{tmp_path} is taken."]
        events.append("first")
    thread.join()
    assert events[1:] == ["first", "second"]


def test_a_file_system_without_locks_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", fail)
    with (tmp_path / "file").open("w") as opened:
        assert take(opened, fcntl.LOCK_EX | fcntl.LOCK_NB) is True
