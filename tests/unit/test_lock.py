"""The two files that `make lock` writes agree with each other, and installing from them verifies hashes."""

import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([a-z0-9.-]+)==(\S+)", re.MULTILINE)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_each_installed_package_has_a_hash_and_torch_is_left_to_its_own_index() -> None:
    packages = re.split(r"\n(?=\S)", text("requirements.lock").split("\n", 1)[1])
    assert len(packages) > 50
    assert [each for each in packages if not re.search(r"--hash=sha256:[0-9a-f]{64}", each)] == []
    assert "torch" not in dict(PIN.findall(text("requirements.lock")))


def test_the_lock_and_the_constraints_agree() -> None:
    installed, constrained = (set(PIN.findall(text(name))) for name in ("requirements.lock", "constraints.lock"))
    assert installed < constrained
    assert {"torch", "ctranslate2", "h11"} <= dict(constrained).keys()
    direct = tomllib.loads(text("pyproject.toml"))["project"]["dependencies"]
    named = {re.split(r"[^A-Za-z0-9-]", each)[0] for each in direct} - {"torch"}
    assert named <= dict(installed).keys()


def test_the_constraints_have_each_optional_package_but_those_for_an_environment_of_their_own() -> None:
    optional = tomllib.loads(text("pyproject.toml"))["project"]["optional-dependencies"]
    assert optional.pop("comet"), "its packages conflict with others"
    named = {re.split(r"[^A-Za-z0-9-]", each)[0] for extra in optional.values() for each in extra}
    assert len(named) > 20
    assert {name.lower() for name in named} - dict(PIN.findall(text("constraints.lock"))).keys() == set()


def kept_by_setup(tmp_path: Path, index: str) -> str:
    """Return the lock that `make setup` installs from with this index of torch, by the commands that make prints."""
    (tmp_path / ".venv").mkdir()
    for name in ("Makefile", "requirements.lock", "constraints.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    words = ["make", "-n", "setup", f"TORCH_INDEX={index}"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.splitlines()
    for filtering in (line for line in printed if line.startswith("awk")):
        subprocess.run(filtering, shell=True, check=True, cwd=tmp_path)
    (installed,) = (line.rpartition(" ")[2] for line in printed if "--require-hashes" in line)
    return (tmp_path / installed).read_text(encoding="utf-8")


def test_setup_leaves_triton_to_builds_of_torch_for_amd(tmp_path: Path) -> None:
    whole = dict(PIN.findall(text("requirements.lock")))
    assert "triton" in whole
    found = kept_by_setup(tmp_path, "https://example.org/whl/rocm6.4")
    assert dict(PIN.findall(found)) == {name: version for name, version in whole.items() if name != "triton"}
    assert not re.search("^[^a-z ]", found, re.MULTILINE)


def test_setup_installs_the_whole_lock_with_other_builds(tmp_path: Path) -> None:
    assert kept_by_setup(tmp_path, "https://example.org/whl/cu128") == text("requirements.lock")


def test_a_later_setup_takes_torch_from_the_same_index_and_says_if_another_one_is_named(tmp_path: Path) -> None:
    kept_by_setup(tmp_path, "https://example.org/whl/rocm6.4")
    (tmp_path / ".venv/torch_index").write_text("https://example.org/whl/rocm6.4\n")

    def printed(*words: str) -> str:
        done = subprocess.run(["make", "-n", *words], capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout

    again = printed("setup")  # as after a change of the locked packages
    assert "-r .venv/requirements.txt" in again
    assert '--index-url "https://example.org/whl/rocm6.4"' in again
    assert "-r .venv/requirements.txt" in printed("wheels")
    other = printed("setup", "TORCH_INDEX=https://example.org/whl/cpu")  # what is installed is what is recorded
    assert "whl/cpu" not in other
    assert other.count("https://example.org/whl/rocm6.4") == 2
    (tmp_path / ".venv/ready").touch()
    assert printed("setup") == "echo 'setup: .venv is ready'\n"
    assert "keeps its torch: for another one run `make clean`" in printed(
        "setup", "TORCH_INDEX=https://example.org/whl/cpu"
    )


def test_a_later_setup_says_if_another_python_is_named(tmp_path: Path) -> None:
    kept_by_setup(tmp_path, "")
    (tmp_path / ".venv/ready").touch()

    def printed(version: str) -> str:
        (tmp_path / ".venv/pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {version}\n")
        words = ["make", "-n", "setup", f"PYTHON={sys.executable}"]
        return subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    assert printed(platform.python_version()) == "echo 'setup: .venv is ready'\n"
    assert "keeps its Python: for another one run `make clean` first" in printed("3.10.1")
