"""Write the settings of a run as YAML, and read them back from runs and checkpoints."""

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any, TypeVar, cast

import yaml
from omegaconf import DictConfig, ListConfig, OmegaConf

from nmt.config.messages import one_line_errors
from nmt.config.tree import Config
from nmt.errors import ConfigError

Parsed = TypeVar("Parsed")

MAX_DEPTH = 20
"""The deepest nesting accepted in saved settings."""
INTERPOLATION = re.compile(r"(\\*)\$\{")
"""The start of an OmegaConf interpolation; after an odd number of backslashes it is plain text."""
QUICK_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The loader in C, which takes a tenth of the time, where PyYAML was built with it."""
PRIVATE_PATH = re.compile(r"(?<![\w/.~-])(?:~[\w-]*|\.\.)?/(?!/)\S+")
"""A path of a machine or a person, also after a name and a colon; no part of a URL."""


def to_yaml(config: Config) -> str:
    """Return all settings with their values as YAML, as a run's folder stores them."""
    return OmegaConf.to_yaml(OmegaConf.create(_escape(asdict(config))))


def from_yaml(text: str) -> Config:
    """Return the settings that `to_yaml` wrote; settings newer than the text take their defaults."""
    _plain_yaml(text)  # refuses interpolations, which OmegaConf would resolve
    with one_line_errors():
        saved = OmegaConf.load(io.StringIO(text))
        if not isinstance(saved, DictConfig) or not saved:
            raise ConfigError("the saved settings are empty or not a list of `key: value`")
        escaped = cast("dict[str, Any]", OmegaConf.to_container(saved, resolve=False))
        return to_config(OmegaConf.merge(schema_tree(), escaped))


def read_settings(config_text: str) -> dict[str, Any]:
    """Return the settings in a saved config.yaml by their dotted keys, without checking their names and values."""
    settings = _plain_yaml(config_text)
    return flatten(settings if isinstance(settings, dict) else {})


def read_saved(path: Path, parse: Callable[[str], Parsed]) -> Parsed:
    """Return what `from_yaml` or `read_settings` makes of a file; an error names the file."""
    if path.exists() and not path.is_file():  # a pipe might never end
        raise ConfigError(f"{path} is not a file: restore it")
    try:
        return parse(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: restore it, or save it as UTF-8") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def without_folders(text: str) -> str:
    """Return what `to_yaml` wrote with the last names of paths instead of whole paths, which may be private."""
    public = _map_texts(
        _plain_yaml(text), lambda _, value: PRIVATE_PATH.sub(lambda path: PurePath(path[0]).name, value)
    )
    return OmegaConf.to_yaml(OmegaConf.create(_escape(public)))


def flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings as a flat dictionary with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def schema_tree() -> DictConfig:
    """Return the schema and its defaults as a typed OmegaConf tree that accepts new values."""
    tree: DictConfig = OmegaConf.structured(Config)
    _make_writable(tree)
    return tree


def to_config(tree: Any) -> Config:
    """Return a tree made from `schema_tree` as a frozen, checked Config."""
    _refuse_nested_lists(tree)
    config = OmegaConf.to_object(tree)
    assert isinstance(config, Config)
    return config


def _refuse_nested_lists(node: DictConfig, prefix: str = "") -> None:
    """Refuse lists and dictionaries in a list of texts, because OmegaConf does not check their types."""
    for name in map(str, node):
        child = node[name]
        if isinstance(child, DictConfig):
            _refuse_nested_lists(child, f"{prefix}{name}.")
        elif (
            isinstance(child, ListConfig)
            and child._metadata.element_type is str
            and any(isinstance(each, DictConfig | ListConfig) for each in child)
        ):
            raise ConfigError(f"{prefix}{name}={child} must be a list of texts: write {prefix}{name}=[a,b]")


def _make_writable(node: DictConfig) -> None:
    """Undo what frozen dataclasses become in OmegaConf: read-only nodes, which no override could change."""
    OmegaConf.set_readonly(node, False)
    for name in node:
        child = node[name]
        if isinstance(child, DictConfig):
            _make_writable(child)


def _plain_yaml(text: str) -> Any:
    """Return saved settings as plain values; refuse interpolations, which could read the environment."""
    try:
        _check_extent(text)
        return _map_texts(yaml.load(text, QUICK_LOADER), _unescape)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"these saved settings are not YAML ({reason}): restore it") from error


def _escape(settings: Any) -> Any:
    """Escape `${` in every text of nested settings, so that OmegaConf reads it as plain text."""
    return _map_texts(settings, lambda _, text: INTERPOLATION.sub(r"\1\1\\${", text))


def _unescape(key: str, text: str) -> str:
    """Undo `_escape`; refuse an interpolation, which a malicious checkpoint could use to read its reader's secrets."""

    def plain(start: re.Match[str]) -> str:
        backslashes = len(start[1])
        if backslashes % 2 == 0:
            raise ConfigError(
                f"these saved settings have an interpolation: {key}={text}. Saved settings must not depend "
                "on the machine that reads them: write the value itself, or \\${ if you mean the characters"
            )
        return "\\" * (backslashes // 2) + "${"

    return INTERPOLATION.sub(plain, text)


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
    """Refuse what `to_yaml` never writes: great depth, and aliases, a few of which can expand beyond all memory."""
    depth = 0
    for event in yaml.parse(text, QUICK_LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise ConfigError("these saved settings contain an alias (*name): restore it")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ConfigError(f"these saved settings are nested deeper than {MAX_DEPTH} levels: restore it")
