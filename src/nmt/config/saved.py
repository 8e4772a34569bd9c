"""Write the settings of a run as YAML, read them back, and say which may change when the run is resumed."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path, PurePath
from typing import Any

import yaml

from nmt.config.keys import all_keys, unknown_setting, written
from nmt.config.training import SCHEDULES_WITHOUT_END
from nmt.config.tree import Config
from nmt.errors import ConfigError, UserError

MAX_DEPTH = 20
"""The deepest nesting accepted in saved settings."""
QUICK_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader in C, which takes a tenth of the time, where PyYAML was built with it."""
GONE = (("training", "max_minutes"), ("parse", "format"))
"""Settings of earlier versions that changed nothing about a model; their saved values are passed over."""
Settings = Mapping[str, object]
"""The values of settings by dotted key."""
PRIVATE_PATH = re.compile(r"(?<![\w/.~-])(?:~[\w-]*|\.\.)?/(?!/)\S+")
"""A path of a machine or a person, also after a name and a colon; no part of a URL."""


def to_yaml(config: Config) -> str:
    """Return all settings with their values as YAML, as a run's folder stores them."""
    text: str = yaml.safe_dump(asdict(config), sort_keys=False, allow_unicode=True)
    return text


def from_yaml(text: str | bytes) -> Config:
    """Return the settings that `to_yaml` wrote; settings newer than the text take their defaults.

    Nothing in the text is resolved: an interpolation of Hydra is plain text, which cannot read the environment.
    """
    settings = _parsed(text)
    if not settings:
        raise ConfigError("the saved settings are empty or not a list of `key: value`")
    config: Config = to_config(settings)
    return config


def read_settings(text: str | bytes) -> dict[str, Any]:
    """Return what `to_yaml` wrote by dotted keys, without checking the names and values of settings."""
    return flatten(_parsed(text))


def load_config(path: Path) -> Config:
    """Return the settings in a file; an error names the file."""
    with naming_file(path):
        return from_yaml(path.read_bytes())


def load_settings(path: Path) -> dict[str, Any]:
    """Return the settings in a file by dotted keys, without checking their names and values."""
    with naming_file(path):
        return read_settings(path.read_bytes())


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Name the file in an error of its settings."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _parsed(text: str | bytes) -> dict[str, Any]:
    """Return YAML as plain values; refuse what `to_yaml` never writes.

    That is great depth, and aliases, a few of which can expand beyond all memory.
    """
    try:
        depth = 0
        for event in yaml.parse(text, QUICK_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH or isinstance(event, yaml.AliasEvent):
                raise ConfigError(f"the saved settings have an alias, or more than {MAX_DEPTH} levels: restore them")
        settings = yaml.load(text, QUICK_LOADER)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"the saved settings are not YAML ({' '.join(str(error).split())}): restore them") from error
    if not isinstance(settings, dict):
        return {}
    for group, name in GONE:
        if isinstance(saved := settings.get(group), dict):
            saved.pop(name, None)
            if not saved:
                del settings[group]
    training = settings.get("training")
    if isinstance(training, dict) and training.get("ema") == 0:
        del training["ema"]  # the decay of a moving average, which earlier versions could save in place of the weights
    return settings


def to_config(settings: Any, group: Any = Config, name: str = "") -> Any:
    """Return nested settings as a frozen, checked Config, or as one of its groups."""
    if not isinstance(settings, Mapping):
        raise ConfigError(f"{name} is a group of settings, and cannot be {settings!r}: set {name}.KEY=VALUE")
    prefix = f"{name}." if name else ""
    types: dict[str, Any] = {each.name: each.type for each in fields(group)}
    if unknown := [key for key in settings if key not in types]:
        raise ConfigError(unknown_setting(f"{prefix}{unknown[0]}"))
    inner = {key for key, kind in types.items() if is_dataclass(kind)} & settings.keys()
    return group(**{**settings, **{key: to_config(settings[key], types[key], prefix + key) for key in inner}})


def without_folders(text: str) -> str:
    """Return what `to_yaml` wrote with the last names of paths instead of whole paths, which may be private."""
    return PRIVATE_PATH.sub(lambda path: PurePath(path[0]).name, text)


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as a flat dictionary with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def differences(before: Settings, after: Settings) -> dict[str, tuple[object, object]]:
    """Return the settings that differ, each with both values; a missing setting has today's default."""
    defaults = flatten(asdict(Config()))
    before, after = {**defaults, **before}, {**defaults, **after}
    pairs = {key: (before.get(key), after.get(key)) for key in sorted(before.keys() | after.keys())}
    return {key: (old, new) for key, (old, new) in pairs.items() if old != new}


def check_resumable(saved: Settings, current: Settings) -> None:
    """Refuse to resume a run if a setting has changed, from `saved` to `current`, that affects what it learns."""
    follows_steps = current["training.schedule"] not in SCHEDULES_WITHOUT_END
    changes = ", ".join(
        f"{key} was {written(old) or 'empty'} and is now {written(new) or 'empty'}"
        for key, (old, new) in differences(saved, current).items()
        if not is_adjustable(key) or (key == "training.steps" and follows_steps)
    )
    if changes:
        raise UserError(
            f"this run cannot be resumed with other settings: {changes}. "
            "Set them as they were, or give the run another name= to start a new one"
        )


def is_adjustable(key: str) -> bool:
    """Return whether the schema lets this setting change; a setting that it no longer has must not."""
    return key in all_keys() and all_keys()[key].adjustable
