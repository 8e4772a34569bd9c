"""Optional packages: what installs them, and what is said if they are missing."""

import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from nmt import packages
from nmt.errors import UserError
from nmt.packages import PACKAGES, Package


@pytest.fixture
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = {"not_there_yet": Package("not-there-yet>=1", "a test"), "nowhere_at_all": Package("nowhere", "a test")}
    monkeypatch.setattr(packages, "PACKAGES", declared)


@pytest.mark.usefixtures("_declared")
def test_a_missing_package_is_installed_with_the_command_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/a b/python")
        with pytest.raises(UserError, match=r"package not_there_yet: '/a b/python' -m pip install 'not-there-yet>=1'$"):
            packages.import_optional("not_there_yet")
    write = f"import sys, pathlib; pathlib.Path({str(tmp_path)!r}, 'not_there_yet.py').write_text(repr(sys.argv[1:]))"
    monkeypatch.setenv("NMT_INSTALL", shlex.join([sys.executable, "-c", write, "-q"]))
    monkeypatch.syspath_prepend(tmp_path)
    packages.import_optional("not_there_yet")
    assert (tmp_path / "not_there_yet.py").read_text() == "['-q', 'not-there-yet>=1']"
    assert "installing not-there-yet>=1" in capsys.readouterr().err


@pytest.mark.usefixtures("_declared")
def test_a_failed_installation_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_INSTALL", shlex.join([sys.executable, "-c", "raise SystemExit(3)"]))
    with pytest.raises(UserError, match=r"nowhere could not be installed"):
        packages.import_optional("nowhere_at_all")


def test_the_requirements_of_packages_are_those_of_the_extras() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    allowed = {requirement for name, requirements in extras.items() if name != "dev" for requirement in requirements}
    assert {each.requirement for each in PACKAGES.values()} <= allowed
