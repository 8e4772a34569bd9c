"""Which settings may change between the parts of an interrupted run, and which may not."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import Any

import yaml

from nmt.config.schema import Config
from nmt.errors import ConfigError, UserError

MAY_CHANGE = (
    *("name", "checkpoint", "input", "output", "compare", "engine", "format", "prefix"),
    *("attention.*", "averaging.*", "decoding.*", "evaluation.*", "export.*", "runtime.*", "tracking.*", "paths.*"),
    *("device", "gpus", "rows", "scale", "step"),
    *("training.steps", "training.max_minutes", "training.max_training_minutes", "training.patience"),
    "training.device_tokens",
    *("training.max_bad_steps", "training.on_divergence", "training.reduce_precision"),
    *("training.log_every", "training.valid_every", "training.valid_sentences"),
    *("training.save_every", "training.save_minutes", "training.keep_*", "training.best_by"),
)
"""Settings that do not touch what is learned from which batches; patterns over dotted keys."""

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


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The settings that differ, with both values; one that was not there yet had today's default."""
    defaults = flatten(asdict(Config()))
    pairs = {
        key: (before.get(key, defaults.get(key)), after.get(key, defaults.get(key)))
        for key in sorted(before.keys() | after.keys())
    }
    return {key: (old, new) for key, (old, new) in pairs.items() if old != new}


def check_resumable(saved: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """Make sure that a run goes on with the settings it was started with.

    Args:
        saved: The settings of the checkpoint, as dotted keys.
        current: The settings now, as dotted keys.
    """
    fixed = {
        key: values
        for key, values in differences(saved, current).items()
        if not any(fnmatchcase(key, pattern) for pattern in MAY_CHANGE) or _bends_schedule(key, current)
    }
    if fixed:
        changes = ", ".join(f"{key} was {old} and is now {new}" for key, (old, new) in fixed.items())
        way_back = " ".join(f"{key}={old}" for key, (old, _) in fixed.items())
        raise UserError(
            f"this run cannot go on with other settings: {changes}. "
            f"Give it another name= to start anew, or set {way_back}"
        )


def _bends_schedule(key: str, current: Mapping[str, Any]) -> bool:
    """A cosine ends at the last step, so another last step changes the rate of all the others."""
    return key == "training.steps" and current.get("training.schedule") == "cosine"
