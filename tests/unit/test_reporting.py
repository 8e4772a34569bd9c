"""The end of a run of the tests says how to run failed tests again, and what installs the parts that were skipped."""

import shlex
import tomllib
from pathlib import Path

import pytest

from tests import conftest
from tests.reporting import EXTRA, INSTALL, rerun, skipped_parts

TOP = Path(__file__).parents[2]
FILE = """
import pytest

def test_wrong(): assert 1 == 2

@pytest.mark.skipif(True, reason="needs the extra language")
def test_language(): pass

@pytest.mark.skipif(True, reason="there is a GPU")
@pytest.mark.parametrize("value", [1, 2])
def test_cpu(value): pass
"""


def test_a_run_ends_with_what_to_do_and_pytests_own_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.ini").touch()
    (tmp_path / "test_some.py").write_text(FILE)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:warnings", "-c", str(tmp_path / "empty.ini"), str(tmp_path)]
    assert pytest.main(options, plugins=[conftest]) == pytest.ExitCode.TESTS_FAILED
    lines = capsys.readouterr().out.splitlines()
    end = next(index for index, line in enumerate(lines) if " FAILURES " in line)
    assert lines.index("failed: test_some.py::test_wrong") < end
    language = "1 skipped: needs the extra language: .venv/bin/python -m pip install --constraint constraints.lock "
    start = lines.index(language + "--editable '.[language]'")
    assert lines[start + 1] == "2 skipped: there is a GPU"
    assert lines[start + 2] == "run again: .venv/bin/python -m pytest -m '' test_some.py::test_wrong"
    assert lines[-1].startswith("1 failed, 3 skipped in ")


def test_failed_tests_are_named_once_and_quoted_for_the_shell() -> None:
    command = rerun(["tests/test_a.py::test_b[x y]", "tests/test_a.py::test_b[x y]"])
    assert shlex.split(command)[-1] == "tests/test_a.py::test_b[x y]"
    assert command.count("test_b") == 1


def test_many_failed_tests_are_run_again_as_the_last_failed() -> None:
    assert rerun(f"test_{number}" for number in range(100)).endswith(" -m '' --last-failed")


@pytest.mark.parametrize("reason", [*INSTALL, "needs a C++ compiler, to build"])
def test_a_part_that_can_be_installed_has_a_command(reason: str) -> None:
    (line,) = skipped_parts([reason] * 3)
    assert line.startswith(f"3 skipped: {reason}: ")


def test_every_extra_that_tests_name_exists() -> None:
    extras = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {name for path in (TOP / "tests").rglob("*.py") for name in EXTRA.findall(path.read_text())}
    assert {*named} <= {*extras}
    assert named >= {"comet", "ctranslate2", "huggingface", "language", "serve", "tensorboard"}
