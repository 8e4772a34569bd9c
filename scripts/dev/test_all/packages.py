"""How packages are installed: by pip, with the versions of the lock."""

from test_all.stages import ROOT

PIP = ("-m", "pip", "install", "-q", "--disable-pip-version-check")
LOCK = ROOT / "constraints.lock"


def locked(package: str) -> str:
    """Return the line of the lock about a package."""
    (line,) = [each for each in LOCK.read_text(encoding="utf-8").splitlines() if each.startswith(f"{package}==")]
    return f"{line}\n"
