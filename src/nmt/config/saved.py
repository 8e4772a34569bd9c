"""Settings that a run or a checkpoint has saved, as plain values."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from nmt.errors import ConfigError

DEEPEST = 20
"""Levels that saved settings are nested at most."""
DOLLAR_BRACE = re.compile(r"(\\*)\$\{")
"""The start of an OmegaConf interpolation; after an odd number of backslashes it is plain text."""


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as one level of dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def read_settings(config_text: str) -> dict[str, Any]:
    """The settings in a checkpoint's config.yaml, as dotted keys."""
    settings = plain_yaml(config_text)
    return flatten(settings if isinstance(settings, dict) else {})


def plain_yaml(text: str) -> Any:
    """Return what saved settings say as plain values, and refuse interpolations, which could read the environment."""
    try:
        _check_extent(text)
        return _map_texts(yaml.safe_load(text), _unescape)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"the config.yaml of a checkpoint is not YAML ({reason}): restore it") from error


def escape(settings: Any) -> Any:
    """Escape `${` in every text of nested settings, so that OmegaConf reads it as plain text."""
    return _map_texts(settings, lambda _, text: DOLLAR_BRACE.sub(r"\1\1\\${", text))


def _unescape(key: str, text: str) -> str:
    """Undo `escape`; refuse an interpolation, which the writer of a checkpoint could aim at a reader's secrets."""

    def plain(start: re.Match[str]) -> str:
        backslashes = len(start[1])
        if backslashes % 2 == 0:
            raise ConfigError(
                f"the config.yaml of a checkpoint has an interpolation: {key}={text}. Saved settings must not depend "
                "on the machine that reads them: put the value itself there, or write \\${ if you mean the characters"
            )
        return "\\" * (backslashes // 2) + "${"

    return DOLLAR_BRACE.sub(plain, text)


def _map_texts(value: Any, change: Callable[[str, str], str], key: str = "") -> Any:
    """Replace each text in nested settings by `change(its dotted key, the text)`."""
    match value:
        case str():
            return change(key, value)
        case list() | tuple() | set():
            return [_map_texts(item, change, key) for item in value]
        case dict():
            return {name: _map_texts(item, change, f"{key}.{name}".lstrip(".")) for name, item in value.items()}
        case _:
            return value


def _check_extent(text: str) -> None:
    """Refuse what is never written: aliases, a few of which stand for more than any memory holds, and great depth."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise ConfigError("the config.yaml of a checkpoint holds an alias (*name): restore it")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ConfigError(f"the config.yaml of a checkpoint is nested more than {DEEPEST} deep: restore it")
