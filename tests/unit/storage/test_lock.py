"""Only one process at a time works in a folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.storage.lock import exclusive_folder, folder_in_use


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


def test_who_has_a_folder_alone_may_share_it(tmp_path: Path) -> None:
    with exclusive_folder(tmp_path, taken="is taken.", setting="x") as share:
        share()
        with folder_in_use(tmp_path):  # which would otherwise wait forever
            pass
        with pytest.raises(UserError), exclusive_folder(tmp_path, taken="is taken.", setting="x"):
            pass


def test_several_may_use_a_folder_together_and_nobody_has_it_alone_meanwhile(tmp_path: Path) -> None:
    with exclusive_folder(tmp_path, taken="is taken.", setting="x"):
        pass
    with folder_in_use(tmp_path):
        with (
            folder_in_use(tmp_path),
            pytest.raises(UserError, match=r"is taken\."),
            exclusive_folder(tmp_path, taken="is taken.", setting="x"),
        ):
            pass
        with pytest.raises(UserError), exclusive_folder(tmp_path, taken="is taken.", setting="x"):
            pass
    with exclusive_folder(tmp_path, taken="is taken.", setting="x"):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_writable_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with (
        pytest.raises(UserError, match=r"Choose another with paths\.outputs"),
        exclusive_folder(tmp_path / "run", taken="", setting="paths.outputs"),
    ):
        pass
