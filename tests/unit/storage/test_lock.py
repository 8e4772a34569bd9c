"""Only one process works in a folder at a time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.storage.lock import exclusive_folder


def test_another_process_is_kept_out_and_let_in_when_the_first_has_gone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    program = (
        "from pathlib import Path; from nmt.storage.lock import exclusive_folder\n"
        f"with exclusive_folder(Path({str(folder)!r}), taken='is taken.', setting='x'): pass"
    )
    with exclusive_folder(folder, taken="is taken.", setting="x"):
        kept_out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        with pytest.raises(UserError, match="run is taken"), exclusive_folder(folder, taken="is taken.", setting="x"):
            pass
    assert "UserError" in kept_out.stderr
    assert f"{folder} is taken." in kept_out.stderr
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with (
        pytest.raises(UserError, match=r"Choose another with paths\.outputs"),
        exclusive_folder(tmp_path / "run", taken="", setting="paths.outputs"),
    ):
        pass
