"""Add the settings of features to those of the core, as groups of their own or in groups of the core."""

from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields, make_dataclass
from functools import cache
from typing import Any

from nmt.config.checks import ADJUSTABLE
from nmt.config.schema.config import Config
from nmt.discovery import features, imported
from nmt.feature import Group

HOME = "nmt.config.schema"
"""The module in which pickle finds the classes."""


@cache
def classes() -> Mapping[str, type]:
    """Return the classes of the whole tree and of its groups, by the names of the core's and the features' classes."""
    added = _added()
    core = {each.name: each for each in fields(Config) if isinstance(each.type, type) and each.name in _groups()}
    members: list[tuple[str, type, Field[Any]]] = []
    found: dict[str, type] = {}
    for name, original in core.items():
        group = _extended(original.type, [imported(each.code) for each in added.get(name, ())])  # type: ignore[arg-type]
        members.append((name, group, field(default_factory=group, metadata=original.metadata)))
        found[group.__name__] = group
    for name in (name for name in added if name and name not in core):
        first, *others = added[name]
        group = _extended(imported(first.code), [imported(each.code) for each in others])
        metadata = ADJUSTABLE if first.adjustable else {}
        members.append((name, group, field(default_factory=group, metadata=metadata)))
        found[group.__name__] = group
    root = _extended(Config, [imported(each.code) for each in added.get("", ())])
    found["Config"] = _made("Config", members, (root,), {})
    return found


def _groups() -> set[str]:
    """Return the names of the core's groups."""
    return {each.name for each in fields(Config) if hasattr(each.type, "__dataclass_fields__")}


def _added() -> dict[str, list[Group]]:
    """Return what features add to each group, by its name."""
    added: dict[str, list[Group]] = {}
    for feature in features().values():
        for name, group in feature.settings.items():
            added.setdefault(name, []).append(group)
    return added


def _extended(group: type, parts: Sequence[type]) -> type:
    """Return a group with the fields of further classes after its own; each class checks its values."""
    if not parts:
        return group
    checks = [vars(each)["__post_init__"] for each in (group, *parts) if "__post_init__" in vars(each)]

    def check_all(settings: object) -> None:
        for check in checks:
            check(settings)

    # dataclasses takes the fields of the last base first
    bases = (*reversed(parts), group)
    return _made(group.__name__, [], bases, {"__post_init__": check_all})


def _made(
    name: str, members: Sequence[tuple[str, type, Field[Any]]], bases: tuple[type, ...], methods: dict[str, Any]
) -> type:
    made = make_dataclass(name, members, bases=bases, frozen=True, kw_only=True, namespace=methods)
    made.__module__ = HOME  # not in the namespace: from Python 3.12 on, `make_dataclass` replaces it
    return made
