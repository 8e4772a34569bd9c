"""Saved settings name the extensions that they use, so that a machine without one can say what to install.

The names are comments at the top of a config.yaml. Settings of extensions that have their defaults are left out, so
that a run that does not use an extension can be loaded without it.
"""

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from nmt.config.schema import Config
from nmt.discovery import Extension, extensions, imported
from nmt.errors import ConfigError
from nmt.feature import Feature

_LINE = "# made with the extension {name}: {package} {version}\n"
_WRITTEN = re.compile(r"^# made with the extension (\S+): (\S+) (\S+)$", re.MULTILINE)


def name_extensions(config: Config) -> str:
    """Return comments that name the extensions in use."""
    return "".join(_LINE.format(**each._asdict()) for each in _working() if _uses(each, config))


def leave_out_defaults(settings: dict[str, Any]) -> None:
    """Remove settings of extensions from a tree of saved settings if they have their defaults."""
    for group, name, default in (found for each in _working() for found in _defaults(each)):
        tree = settings.get(group, {}) if group else settings
        if tree.get(name) == default:
            del tree[name]
        if group and not tree:
            settings.pop(group, None)


def check_extensions(text: str) -> None:
    """Refuse saved settings if they use an extension that is not installed or is broken."""
    working = {each.name for each in _working()}
    for name, package, version in _WRITTEN.findall(text):
        if name not in working:
            raise ConfigError(
                f"this run uses the extension {name}, which is not installed here or is broken: install it with "
                f"`pip install {package}=={version}`, or from where its author publishes it"
            )


def _working() -> Iterator[Extension]:
    return (each for each in extensions() if each.feature)


def _uses(extension: Extension, config: Config) -> bool:
    """Return whether a setting of an extension differs from its default, or a setting chooses its code."""
    changed = any(_value(config, group, name) != default for group, name, default in _defaults(extension))
    return changed or any(
        str(_value(config, *setting.rpartition(".")[::2])) in choices
        for setting, choices in _feature(extension).all_choices.items()
    )


def _feature(extension: Extension) -> Feature:
    assert extension.feature
    return extension.feature


def _defaults(extension: Extension) -> Iterator[tuple[str, str, Any]]:
    """Yield group, name and default of each setting that an extension adds."""
    for group, added in _feature(extension).settings.items():
        settings = imported(added.code)
        default = settings()
        yield from ((group, each.name, getattr(default, each.name)) for each in fields(settings))


def _value(config: Config, group: str, name: str) -> Any:
    return getattr(getattr(config, group) if group else config, name)
