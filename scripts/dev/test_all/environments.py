"""Stages that install: the extras with all tests, and COMET's tests."""

import os
import re
import shutil
import sys
import sysconfig
import tomllib
from collections.abc import Mapping
from pathlib import Path

from test_all.clients import client_variables
from test_all.packages import LOCK, PIP, locked
from test_all.stages import ROOT, Context, StageError

THIS_CLONE = ("--no-build-isolation", "--editable")
ALONE = ("dev", "comet")
"""Extras that the other ones are not installed with: .venv has the first, and the second conflicts with them."""
EXTRAS_PYTHON = ROOT / ".venv" / "extras" / "bin" / "python"
COMET_PYTHON = ROOT / ".venv" / "comet" / "bin" / "python"
SKIPPED = re.compile(r"^(\d+) skipped: ([^\n]*)", re.MULTILINE)
"""What tests/conftest.py prints per reason."""
FAILED = re.compile(r"^(?:\d+ \w+, )*\d+ (?:failed|errors?)\b.* in ", re.MULTILINE)
"""pytest's closing line if tests failed."""
TESTS_FAILED = 1
"""pytest's exit code for it."""
OF_ROOT = "tests/unit/storage/test_lock.py"


def install_extras(context: Context) -> None:
    """Install the extras that fit together, each alone if not all of them can be had."""
    python = _layer(context)
    names = sorted(_extras().keys() - set(ALONE))
    context.say(f"installing {', '.join(names)}")
    if _install(context, python, names):
        return
    had = [name for name in names if _install(context, python, [name])]
    for name in sorted(set(names) - set(had)):
        context.skipped[f"extra: {name} cannot be installed here"] += 1
    if not had:
        raise StageError("no extra can be installed")


def _extras() -> Mapping[str, list[str]]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        found: Mapping[str, list[str]] = tomllib.load(file)["project"]["optional-dependencies"]
    return found


def _install(context: Context, python: Path, extras: list[str]) -> bool:
    """Install extras of this clone, and return whether that was possible."""
    words = ["--constraint", str(LOCK), *THIS_CLONE, f".[{','.join(extras)}]"]
    try:
        context.run(python, *PIP, *words)
    except StageError:
        return False
    return True


def _layer(context: Context) -> Path:
    """Make an environment with this clone, which adds to the present one without changing it; return its Python."""
    if not EXTRAS_PYTHON.exists():
        context.run(sys.executable, "-m", "venv", "--without-pip", EXTRAS_PYTHON.parents[1])
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        below = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        (EXTRAS_PYTHON.parents[1] / "lib" / version / "site-packages" / "below.pth").write_text(below)
        context.run(EXTRAS_PYTHON, *PIP, "--no-deps", *THIS_CLONE, ".")
    return EXTRAS_PYTHON


def run_tests(context: Context) -> None:
    """Run all tests: with the extras if the stage before has installed them."""
    python = EXTRAS_PYTHON if EXTRAS_PYTHON.exists() else Path(sys.executable)
    words = ("scripts/launch.py", "test", "-m", "", *context.words)
    output = context.run(python, *words, environment=client_variables(), show=True, codes=(0, TESTS_FAILED))
    skipped = SKIPPED.findall(output)
    as_nobody = any(reason.startswith("root may") for _, reason in skipped) and _as_nobody(context, python)
    for count, reason in skipped:
        if reason.startswith("needs the extra comet") or (as_nobody and reason.startswith("root may")):
            continue
        context.skipped[f"tests: {reason.partition(': ')[0]}"] += int(count)
    if FAILED.search(output):
        raise StageError("tests failed; the end of the log says how to run them again")


def _as_nobody(context: Context, python: Path) -> bool:
    """Run the tests that root cannot run as another user; return whether that is possible."""
    if not shutil.which("setpriv"):
        return False
    home = context.folder / "nobody"
    home.mkdir()
    for folder in (home, context.folder):
        os.chown(folder, 65534, 65534)
    reading = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")  # the clone may lie below /root
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *reading)
    environment = {"HOME": str(home), "TMPDIR": str(home), "PYTEST_DEBUG_TEMPROOT": str(home)}
    try:
        context.run(*user, python, "-c", "import nmt, pytest", environment=environment)
    except StageError:
        return False
    context.say("the tests that root skips, as another user")
    words = ("-p", "no:cacheprovider", OF_ROOT)
    return "skipped" not in context.run(*user, python, "-m", "pytest", *words, environment=environment)


def run_comet(context: Context) -> None:
    """Run the tests of COMET, with the locked torch and older versions of other packages."""
    if not COMET_PYTHON.exists():
        context.run(sys.executable, "-m", "venv", COMET_PYTHON.parents[1])
    torch = context.folder / "torch.txt"
    torch.write_text(locked("torch"), encoding="utf-8")
    context.say("installing comet and dev")
    context.run(COMET_PYTHON, *PIP, "--constraint", torch, "--editable", ".[comet,dev]")
    output = context.run(COMET_PYTHON, "-m", "pytest", "tests/features/comet/test_comet.py", show=True)
    for count, reason in SKIPPED.findall(output):
        if not reason.startswith("unbabel-comet is installed"):
            context.skipped[f"tests: {reason}"] += int(count)
