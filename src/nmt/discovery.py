"""The features that are there: each folder of `nmt/features/`, and those that other installed packages declare."""

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple

import nmt.features
from nmt.errors import ConfigError
from nmt.feature import Feature, Group
from nmt.launched import is_main_process

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "nmt.features"
"""The group of entry points by which other packages name their declarations: `name = "module:FEATURE"`."""
VERSION_CHECK = "nmt.versions:check_requirements"
"""A function that takes the requirements of an extension, and raises a ConfigError if they exclude this version."""


class Extension(NamedTuple):
    """A feature of another package."""

    name: str
    package: str
    """The distribution that contains it."""
    version: str
    feature: Feature | None
    """None if it is broken."""
    problem: str = ""
    """Why it is broken."""

    def __str__(self) -> str:
        return f"{self.name} ({self.package} {self.version})"


@cache
def features() -> Mapping[str, Feature]:
    """Return the features by name: those of this package, then the extensions that work."""
    return own_features() | {each.name: each.feature for each in extensions() if each.feature}


@cache
def own_features() -> dict[str, Feature]:
    """Return the features of this package by name."""
    names = sorted(each.name for each in iter_modules(nmt.features.__path__) if each.ispkg)
    return {name: import_module(f"nmt.features.{name}").FEATURE for name in names}


def extensions() -> tuple[Extension, ...]:
    """Return the features that other installed packages declare; name each broken one on standard error."""
    return tuple(_found())


def turn_off(name: str, error: Exception) -> None:
    """Treat an extension as broken from now on, because of something that was found out when it was used."""
    found = _found()
    index, old = next((index, each) for index, each in enumerate(found) if each.name == name and each.feature)
    found[index] = _broken(name, old.package, old.version, error)
    features.cache_clear()


@cache
def _found() -> list[Extension]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and few modules need the features

    found: list[Extension] = []
    for point in sorted(entry_points(group=ENTRY_POINTS)):
        found.append(_loaded(point, own_features() | {each.name: each.feature for each in found if each.feature}))
    return found


def _loaded(point: "EntryPoint", others: Mapping[str, Feature]) -> Extension:
    """Import the declaration of an extension. Its settings are checked when settings are used."""
    package = (point.dist.name, point.dist.version) if point.dist else ("", "")
    try:
        if point.dist:
            imported(VERSION_CHECK)(point.dist.requires or [])
        feature = point.load()
        if not isinstance(feature, Feature):
            raise TypeError(f"{point.value} is not a nmt.feature.Feature")
        _check_names(point.name, feature, others)
    except Exception as error:  # code of others may raise anything, and must not stop what does not use it
        return _broken(point.name, *package, error)
    return Extension(point.name, *package, feature)


def _broken(name: str, package: str, version: str, error: Exception) -> Extension:
    """Return a broken extension, and name it on standard error."""
    kind = "" if isinstance(error, ConfigError) else f"{type(error).__name__}: "
    problem = f"{kind}{' '.join(str(error).split())}; update or uninstall it"
    extension = Extension(name, package, version, None, problem)
    if is_main_process():
        print(f"nmt: the extension {extension} is off: {extension.problem}", file=sys.stderr)
    return extension


def _check_names(name: str, feature: Feature, others: Mapping[str, Feature]) -> None:
    """Refuse an extension that gives a name of another feature another meaning."""
    if name in others:
        raise ConfigError(f"there is another feature {name}")
    taken = {key for other in others.values() for key in _names_of(other)}
    if twice := sorted(taken.intersection(_names_of(feature))):
        raise ConfigError(f"another feature has {twice[0]} too")


def _names_of(feature: Feature) -> Iterator[str]:
    """Yield what a feature adds to the command line and the scores, as a user writes it."""
    yield from (f"the command {name}" for name in feature.commands)
    yield from (f"the metric {name}" for name in feature.metrics)
    yield from (f"{setting}={value}" for setting, some in feature.all_choices.items() for value in some)


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
