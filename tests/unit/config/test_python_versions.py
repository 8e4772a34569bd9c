"""Settings reach other processes in each version of Python that this machine has, not only in the one of the tests."""

import shutil
import subprocess
from pathlib import Path

import pytest

from nmt.config.schema import Config

SOURCE = Path(__file__).parents[3] / "src"
MINORS = range(11, 16)
PROGRAM = f"""
import sys
sys.path.insert(0, {str(SOURCE)!r})
import pickle
from nmt.config.schema import Config
assert pickle.loads(pickle.dumps(Config())) == Config()
print(*sys.version_info[:2])
"""
"""Settings need nothing but the standard library, so no other package must be there."""


def interpreter(minor: int) -> str:
    """Return the path of a version of Python, from the search path or pyenv; skip the test if there is none."""
    found = [str(each) for each in (Path.home() / ".pyenv" / "versions").glob(f"3.{minor}.*/bin/python")]
    if on_path := shutil.which(f"python3.{minor}"):
        found.append(on_path)
    for each in found:
        version = subprocess.run([each, "--version"], capture_output=True, text=True, check=False).stdout
        if version.startswith(f"Python 3.{minor}."):  # a shim of pyenv may lead nowhere
            return each
    pytest.skip(f"needs Python 3.{minor}")


def test_settings_are_found_where_pickle_looks_for_them() -> None:
    assert Config.__module__ == "nmt.config.schema"


@pytest.mark.parametrize("minor", MINORS)
def test_settings_can_be_sent_to_another_process(minor: int) -> None:
    run = subprocess.run([interpreter(minor), "-B", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == ["3", str(minor)]
