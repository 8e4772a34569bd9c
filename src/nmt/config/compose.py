"""From `conf/` and the words on the command line to one frozen, checked Config; and back to text.

Only this module and `nmt.config.multirun` import Hydra and OmegaConf. Every mistake becomes a one-line ConfigError.
"""

import difflib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException

from nmt.config.keys import GROUPS, all_keys, nearest_key
from nmt.config.saved import escape, plain_yaml
from nmt.config.schema import Config, is_utf8
from nmt.errors import ConfigError


def compose(overrides: Sequence[str]) -> Config:
    """The settings that `conf/` and these overrides (`training.steps=3`, `model=big`) make."""
    for override in overrides:
        _check_override(override)
    register_schema()
    with in_one_line(overrides), hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return _to_config(hydra.compose("config", overrides=list(overrides)))


def to_yaml(config: Config) -> str:
    """Return all settings as YAML, each with its value: what a run's folder keeps."""
    return OmegaConf.to_yaml(OmegaConf.create(escape(asdict(config))))


def from_yaml(text: str) -> Config:
    """Return the settings that `to_yaml` wrote; those that it did not know yet take their defaults."""
    plain_yaml(text)  # OmegaConf would resolve the interpolations that this refuses
    with in_one_line(()):
        saved = OmegaConf.load(io.StringIO(text))
        if not isinstance(saved, DictConfig) or not saved:
            raise ConfigError("the saved settings are empty or no list of `key: value`")
        return _to_config(OmegaConf.merge(_schema(), saved))


def options(group: str) -> list[str]:
    """The files to choose from in a group of `conf/`, as they are named on the command line."""
    folder = conf_folder() / group
    return sorted(str(file.relative_to(folder).with_suffix("")) for file in folder.rglob("*.yaml"))


@cache
def conf_folder() -> Path:
    """`conf/`: inside an installed package, or at the top of the repository."""
    package = Path(__file__).resolve().parents[1]
    packed = package / "conf"
    return packed if packed.is_dir() else package.parents[1] / "conf"


def register_schema() -> None:
    """Make the schema known to Hydra, under the name that conf/config.yaml calls it by."""
    ConfigStore.instance().store("schema", _schema(), provider="nmt")


def _schema() -> DictConfig:
    """The schema with its defaults, as a typed tree that may be written to."""
    tree: DictConfig = OmegaConf.structured(Config)
    _unlock(tree)
    return tree


def _unlock(node: DictConfig) -> None:
    """Frozen dataclasses become read-only nodes, which no file and no override could change."""
    OmegaConf.set_readonly(node, False)
    for name in node:
        child = node[name]
        if isinstance(child, DictConfig):
            _unlock(child)


def _to_config(tree: Any) -> Config:
    config = OmegaConf.to_object(tree)
    assert isinstance(config, Config)
    return config


def _check_override(text: str) -> None:
    """Refuse what Hydra would explain at length, or take and then lose."""
    if "\0" in text or not is_utf8(text):
        raise ConfigError(f"{text!r} holds a NUL or is not UTF-8: no setting takes such text")
    override = _parse(text)
    key = str(override.key_or_group)
    if override.package is not None or (key not in GROUPS and key not in all_keys()):
        named = override.get_key_element().lstrip("+~")
        raise ConfigError(f"there is no setting {named}; {_meant(named)}")
    if override.is_delete():
        raise ConfigError(f"{text}: no setting can be taken away; give it the value you want: {key}=...")
    if override.is_add() and not override.is_force_add():
        raise ConfigError(f"{text}: every setting is there already; write it without the +")
    if override.is_sweep_override():
        raise ConfigError(f"{text} gives several values: a run takes one (a list is written {key}=[a,b])")
    if key in GROUPS:
        _check_option(key, override)


def _parse(text: str) -> Override:
    if text.startswith("-"):
        raise ConfigError(f"{text} is not a setting: settings are written key=value, without dashes")
    try:
        override = OverridesParser.create().parse_override(text)
    except HydraException as error:
        raise ConfigError(_unreadable(text)) from error
    if not override.key_or_group:
        raise ConfigError(_unreadable(text))
    return override


def _unreadable(text: str) -> str:
    return f"cannot read {text!r}: write key=value, with quotes around a value of special characters: key='a b, c=d'"


def _check_option(group: str, override: Override) -> None:
    chosen, known = override.value(), options(group)
    if str(chosen) not in known:
        close = difflib.get_close_matches(str(chosen), known, n=1, cutoff=0.5)
        hint = f"did you mean {group}={close[0]}?" if close else f"choose from {', '.join(known)}"
        raise ConfigError(f"there is no {group}={override.get_value_string()}; {hint}")


def _meant(key: str) -> str:
    """What an unknown key may have been meant for."""
    inside = [name for name in all_keys() if name.startswith(key + ".")]
    if inside:
        return f"it is a group of settings: set {inside[0]} or another of them"
    return nearest_key(key, [*all_keys(), *(() if "." in key else GROUPS)])


@contextmanager
def in_one_line(overrides: Sequence[str]) -> Iterator[None]:
    """Turn what Hydra, OmegaConf and YAML raise into one line that says where and what."""
    try:
        yield
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, OSError, ValueError, RecursionError) as error:
        raise ConfigError(_explain(error, overrides)) from error


def _explain(error: BaseException, overrides: Sequence[str]) -> str:
    where = _place(str(error))
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OmegaConfBaseException):
        cause = cause.__cause__ or cause.__context__
    key = cause.full_key or "" if cause else ""
    if key and key not in all_keys():
        return f"{where}there is no setting {key}; {_meant(key)}"
    if "hydra/launcher" in str(error):
        return "hydra/launcher: there is no such launcher here; `pip install nmt[cluster]` brings joblib and submitit_*"
    if cause is None or not key:
        return where + " ".join(str(cause or error).partition("full_key:")[0].split())
    given = next((text for text in reversed(overrides) if text.lstrip("+").startswith(f"{key}=")), key)
    reason = str(cause).splitlines()[0]
    if isinstance(cause, InterpolationResolutionError):
        return f"{where}{given} cannot be worked out: {reason}"
    return f"{where}{given} must be {all_keys()[key].kind}" + (f" ({reason})" if given == key else "")


def _place(message: str) -> str:
    """The file that Hydra says an error is in (`In 'model/big': ...`)."""
    if not message.startswith("In '"):
        return ""
    return f"conf/{message.split(chr(39))[1]}.yaml: "
