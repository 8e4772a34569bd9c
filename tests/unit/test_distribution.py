"""What the sdist and the wheel contain, and that their version is the package's."""

import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import nmt

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(find_spec("hatchling") is None, reason="needs the package hatchling")


@pytest.fixture(autouse=True)
def _in_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def files(folder: str) -> set[str]:
    found = (ROOT / folder).rglob("*")
    return {str(each.relative_to(ROOT)) for each in found if each.is_file() and "__pycache__" not in each.parts}


def test_the_wheel_contains_the_package_and_the_settings(tmp_path: Path) -> None:
    from hatchling.build import build_wheel

    name = build_wheel(str(tmp_path))
    assert name == f"nmt_transformer-{nmt.__version__}-py3-none-any.whl"
    inside = {each for each in zipfile.ZipFile(tmp_path / name).namelist() if ".dist-info/" not in each}
    expected = {each.removeprefix("src/") for each in files("src/nmt")} | {f"nmt/{each}" for each in files("conf")}
    assert inside == expected
    assert "nmt/py.typed" in inside


def test_the_sdist_contains_what_builds_the_wheel(tmp_path: Path) -> None:
    from hatchling.build import build_sdist

    name = build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / name) as archive:
        inside = {each.partition("/")[2] for each in archive.getnames()}
    beside = {"PKG-INFO", ".gitignore", "pyproject.toml", "README.md", "CHANGELOG.md", "SECURITY.md"}
    beside |= {"CITATION.cff", "LICENSE"}
    assert inside == files("src/nmt") | files("conf") | beside
