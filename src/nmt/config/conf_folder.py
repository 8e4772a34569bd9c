"""`conf/`: where it lies, and the groups of settings that its files set together, chosen by name: `model=big`."""

from dataclasses import fields
from functools import cache
from pathlib import Path

from nmt.config.schema import Config


@cache
def conf_folder() -> Path:
    """Return `conf/`: inside an installed package, or at the top of the repository."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "conf"
    return packaged if packaged.is_dir() else package.parents[1] / "conf"


@cache
def groups() -> tuple[str, ...]:
    """Return the groups in the order of the settings, after `experiment`, which sets any of them."""
    folders = _folders()
    return ("experiment", *(field.name for field in fields(Config) if field.name in folders))


@cache
def unknown_groups() -> tuple[str, ...]:
    """Return the folders of `conf/` whose settings do not exist because their feature was deleted."""
    return tuple(sorted(_folders() - set(groups())))


def options(group: str) -> list[str]:
    """Return the names of the files in a group of `conf/`, as they are written on the command line."""
    folder = conf_folder() / group
    return sorted(str(file.relative_to(folder).with_suffix("")) for file in folder.rglob("*.yaml"))


def _folders() -> set[str]:
    return {path.name for path in conf_folder().iterdir() if path.is_dir()}
