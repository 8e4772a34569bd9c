"""The folders of settings, and the groups that their files set together, chosen by name: `model=big`.

The user's own folders come before the package's `conf/`, so a file in them can add a name or replace one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from pathlib import Path

from nmt.config.tree import Config
from nmt.errors import ConfigError

CONFIG_DIR = "NMT_CONFIG_DIR"
"""The environment variable that names folders of settings, separated like those of PATH."""
EXPERIMENT = "experiment"
"""The group that may set any setting."""


@cache
def conf_folder() -> Path:
    """Return `conf/`: inside an installed package, or at the top of the repository."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "conf"
    return packaged if packaged.is_dir() else package.parents[1] / "conf"


def own_folders() -> tuple[Path, ...]:
    """Return the user's folders, the first of which wins: those that NMT_CONFIG_DIR names, then `conf/` here."""
    found = [each.resolve() for each in (*_named_folders(), Path("conf")) if each.is_dir()]
    return tuple(each for each in dict.fromkeys(found) if each != conf_folder())


@contextmanager
def adding_folder(folder: str | None) -> Iterator[None]:
    """Put a folder (of `--config-dir`) before all others, for this process and those that it starts."""
    before = os.environ.get(CONFIG_DIR)
    if folder is not None:
        os.environ[CONFIG_DIR] = os.pathsep.join([os.path.abspath(folder), *([before] if before else [])])  # noqa: PTH100
    try:
        yield
    finally:
        if folder is not None:
            os.environ.pop(CONFIG_DIR)
        if before is not None:
            os.environ[CONFIG_DIR] = before


def check_named_folders() -> None:
    """Refuse a folder of `--config-dir` or NMT_CONFIG_DIR that is missing or has no settings."""
    for folder in _named_folders():
        if not folder.is_dir():
            raise ConfigError(f"there is no folder {folder}: correct --config-dir, or {CONFIG_DIR}")
        if not _groups_in(folder):
            raise ConfigError(f"{folder} has no settings: write some, for instance in {folder}/experiment/mine.yaml")


def groups() -> tuple[str, ...]:
    """Return `experiment` and the groups of settings that have files, in the order of the settings."""
    found = {name for folder in (conf_folder(), *own_folders()) for name in _groups_in(folder)}
    return (EXPERIMENT, *(each.name for each in fields(Config) if each.name in found))


def options(group: str) -> list[str]:
    """Return the names of the files in a group, as they are written on the command line."""
    found = {
        file.relative_to(folder / group).with_suffix("").as_posix()
        for folder in (*own_folders(), conf_folder())
        for file in (folder / group).rglob("*.yaml")
    }
    return sorted(found)


def shown_path(name: str) -> str:
    """Return the path of the file of a group (`experiment/mine`) as messages show it."""
    for folder in own_folders():
        file = folder / f"{name}.yaml"
        if file.is_file():
            return str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)
    return f"conf/{name}.yaml"


def _named_folders() -> list[Path]:
    return [Path(each) for each in os.environ.get(CONFIG_DIR, "").split(os.pathsep) if each]


def _groups_in(folder: Path) -> set[str]:
    """Return the names of the folders in a folder that have files of settings."""
    return {path.name for path in folder.iterdir() if path.is_dir() and any(path.rglob("*.yaml"))}
