"""Link the packages that nmt requires, and no others, from the environment of this Python into a folder.

A virtual environment of these links shows what an installation from the wheel has: a package that nmt imports without
requiring it is missing there. Installing all of them again would take minutes.

    .venv/bin/python .ci/link_packages.py FOLDER
"""

import sys
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement


def required(name: str, extras: set[str]) -> list[Requirement]:
    """Return what a package with these extras requires on this machine."""
    found = map(Requirement, distribution(name).requires or ())
    return [each for each in found if not each.marker or any(each.marker.evaluate({"extra": e}) for e in {"", *extras})]


def main() -> None:
    """Link the packages."""
    folder, done = Path(sys.argv[1]), set[tuple[str, str]]()
    waiting = required("nmt-transformer", set())
    while waiting:
        package = waiting.pop()
        if (key := (package.name.lower(), str(sorted(package.extras)))) in done:
            continue
        done.add(key)
        waiting += required(package.name, package.extras)
        files = distribution(package.name).files or ()
        for name in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            link = folder / name
            if not link.exists():
                link.symlink_to(Path(str(distribution(package.name).locate_file(name))).resolve())


if __name__ == "__main__":
    main()
