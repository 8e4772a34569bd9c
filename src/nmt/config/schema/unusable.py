"""Turn off extensions whose settings cannot be used, so that all other settings still can."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, make_dataclass

from nmt.config.choices import CORE, renew
from nmt.config.schema.config import Config
from nmt.discovery import extensions, imported, own_features, turn_off
from nmt.errors import ConfigError
from nmt.feature import Feature


def turn_off_unusable() -> None:
    """Turn off each extension whose settings cannot be imported or made, or have a name that is taken."""
    foreign = {each.name: each.feature for each in extensions() if each.feature}
    if not foreign:
        return
    taken = {*_core_names(), *(name for each in own_features().values() for name in _names(each))}
    for name, feature in foreign.items():
        try:
            _try(feature)
            added = set(_names(feature))
            if twice := taken & added:
                raise ConfigError(f"there is another setting {min(twice)}")
        except Exception as error:  # code of others may raise anything
            leave_out(name, error)
        else:
            taken |= added


def leave_out(name: str, error: Exception) -> None:
    """Turn off an extension, with the values that it adds to settings."""
    turn_off(name, error)
    renew()


def _try(feature: Feature) -> None:
    """Make the groups of settings that a feature extends, with its settings in them."""
    groups = {each.name: each.type for each in fields(Config)} | {"": Config}
    for name, added in feature.settings.items():
        group = groups.get(name)
        bases = (imported(added.code), *([group] if isinstance(group, type) else []))
        trial = make_dataclass("Trial", [], bases=bases, frozen=True, kw_only=True)
        if name:  # the whole tree can only be made with the settings of all features
            trial()


def _core_names() -> Iterator[str]:
    """Yield the settings and values of the core."""
    yield from (f"{setting}={value}" for setting, some in CORE.items() for value in some)
    for each in fields(Config):
        inner = fields(each.type) if is_dataclass(each.type) else ()
        yield from (f"{each.name}.{one.name}" for one in inner)
        if not inner:
            yield each.name


def _names(feature: Feature) -> Iterator[str]:
    """Yield the settings and values of a feature."""
    yield from (f"{setting}={value}" for setting, some in feature.all_choices.items() for value in some)
    for group, added in feature.settings.items():
        yield from (f"{group}.{each.name}".lstrip(".") for each in fields(imported(added.code)))
