"""The features: each folder of `nmt/features/`."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import nmt.features
from nmt.feature import Feature, Group


@cache
def features() -> Mapping[str, Feature]:
    """Return the features by name."""
    names = sorted(each.name for each in iter_modules(nmt.features.__path__) if each.ispkg)
    return {name: import_module(f"nmt.features.{name}").FEATURE for name in names}


def _groups() -> list[tuple[str, Group]]:
    """Return what features add to groups of settings."""
    return [added for feature in features().values() for added in feature.settings.items()]


def learned_groups() -> tuple[str, ...]:
    """Return the groups of settings of features that decide what a run learns."""
    return tuple(name for name, group in _groups() if not group.adjustable)


def groups_listed_by(command: str) -> tuple[str, ...]:
    """Return the groups of settings of features that the help of a command of the core lists."""
    return tuple(name for name, group in _groups() if command in group.commands)


def main_process_groups() -> tuple[str, ...]:
    """Return the groups of settings of features that only the main process reads."""
    return tuple(name for name, group in _groups() if group.main_process_only)


def unsearchable_groups() -> tuple[str, ...]:
    """Return the groups of settings of features on which the result of no run depends."""
    return tuple(name for name, group in _groups() if group.main_process_only or not group.searchable)


def imported(code: str) -> Any:
    """Return what `module:name` names."""
    module, _, name = code.partition(":")
    return getattr(import_module(module), name)
