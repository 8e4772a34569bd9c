"""Compose `conf/` and the overrides of the command line into one frozen, checked Config.

Every mistake in a setting becomes a ConfigError of one line.
"""

import difflib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, make_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf, open_dict

from nmt.config import registry
from nmt.config.checks import base_type, check_effect
from nmt.config.conf_folder import (
    check_named_folders,
    conf_folder,
    groups,
    options,
    own_folders,
)
from nmt.config.folders import local_folder
from nmt.config.keys import all_keys, open_keys, unknown_setting, value_of
from nmt.config.messages import one_line_errors
from nmt.config.saved import to_config
from nmt.config.tree import Config
from nmt.errors import ConfigError

ROOT = "nmt_root"
"""The name under which Hydra finds conf/config.yaml of the package, even if another folder has a config.yaml."""


LOWER_IS_BETTER = ("loss", "nll", "perplexity", "ter")
"""Metrics of which the lowest is the best, whatever the split; of all others, the highest."""


class OwnSettings(SearchPathPlugin):
    """Puts the user's folders of settings before the package's."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Add the folders, the first of which wins."""
        for folder in own_folders():
            search_path.prepend(provider="own", path=f"file://{folder}", anchor="main")


def compose(overrides: Sequence[str]) -> Config:
    """Return the settings that `conf/` and these overrides (`training.steps=3`, `model=big`) give."""
    check_named_folders()
    known_groups = groups()
    for override in overrides:
        check_override(override, known_groups)
    register_schema()
    words = adding_keys(overrides)
    with (
        one_line_errors(overrides),
        _hydra_released(),
        hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"),
    ):
        tree = hydra.compose(ROOT, overrides=words)
        with open_dict(tree):
            tree.pop("hydra", None)
        return config_of(tree)


@contextmanager
def _hydra_released() -> Iterator[None]:
    """Release Hydra's global state, which a job of Hydra that composes settings holds; restore it afterwards."""
    outer = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        yield
    finally:
        GlobalHydra.instance().hydra = outer


def config_of(tree: DictConfig) -> Config:
    """Return what Hydra has composed as a frozen, checked Config; code that it names, mine:Lion, may be imported."""
    config: Config = to_config(OmegaConf.to_container(tree, resolve=True))
    for setting in registry.CHOICES:
        if ":" in (value := value_of(config, setting)):
            registry.trust(setting, value)
    return config


def given_settings(overrides: Sequence[str]) -> frozenset[str]:
    """Return the settings and groups (`training.steps`, `model`) that these overrides name, without their values."""
    return frozenset(str(parsed(override).key_or_group) for override in overrides)


def check_effects(config: Config, given: Collection[str]) -> None:
    """Refuse settings that the user gives but that have no effect with the value of another one."""
    for name in sorted(given):
        group, _, key = name.partition(".")
        settings = getattr(config, group, None)
        if is_dataclass(settings) and key in {each.name for each in fields(settings)}:
            check_effect(group, settings, key)


def adding_keys(overrides: Sequence[str]) -> list[str]:
    """Return the overrides with the + that Hydra wants for groups that conf/config.yaml does not choose, and the ++ for
    keys that the schema does not have.
    """
    added = set(groups()) - _root_groups()
    words = [f"+{text}" if text.partition("=")[0] in added else text for text in overrides]
    return [f"++{text}" if text.startswith(open_keys()) else text for text in words]


def _root_groups() -> set[str]:
    """Return the groups that conf/config.yaml chooses a file of."""
    return {name for entry in _root()["defaults"] if isinstance(entry, dict) for name in entry}


def _root() -> dict[str, list[object]]:
    root: dict[str, list[object]] = yaml.safe_load((conf_folder() / "config.yaml").read_text(encoding="utf-8"))
    return root


def register_schema() -> None:
    """Register with Hydra the root of the settings, the schema that it names, and what adds the user's folders."""
    ConfigStore.instance().store(ROOT, OmegaConf.create(_root()), provider="nmt")
    _register_once()


@cache
def _register_once() -> None:
    ConfigStore.instance().store("schema", OmegaConf.structured(_schema(Config())), provider="nmt")
    # a launcher may have brought the functions to this process
    OmegaConf.register_new_resolver("folder_name", _folder_name, replace=True)
    OmegaConf.register_new_resolver("direction_of", direction_of, replace=True)
    OmegaConf.register_new_resolver("local_folder", lambda name: str(local_folder(name)), replace=True)
    Plugins.instance().register(OwnSettings)


def _schema(group: Any) -> Any:
    """Return a group of settings as OmegaConf needs it: not frozen, and annotated with types only."""
    values, types = {}, {}
    for each in fields(group):
        value = getattr(group, each.name)
        values[each.name] = _schema(value) if is_dataclass(value) else value
        types[each.name] = type(values[each.name]) if is_dataclass(value) else base_type(each.type)
    return make_dataclass(type(group).__name__, types.items())(**values)


def direction_of(metric: str) -> str:
    """Return what a search does with a metric, such as loss or test.ter, in Optuna's words."""
    return "minimize" if metric.rpartition(".")[2] in LOWER_IS_BETTER else "maximize"


def _folder_name(path: str) -> str:
    """Return the name of a folder, as a name for a run; the usual name if no folder is given."""
    return Path(path).resolve().name if path else Config().name


def check_override(text: str, known_groups: Collection[str], *, several: bool = False) -> None:
    """Refuse overrides that Hydra would reject with a long report, or accept and ignore."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ConfigError(f"{text!r} contains a NUL or is not UTF-8: no setting accepts such text")
    override = parsed(text)
    key = str(override.key_or_group)
    inside = any(key.startswith(f"{name}.") for name in open_keys())  # such keys are checked elsewhere
    known = key in known_groups or key in all_keys() or inside
    if override.package is not None or not known:
        raise ConfigError(unknown_setting(override.get_key_element().lstrip("+~")))
    if override.is_delete():
        raise ConfigError(f"{text}: settings cannot be removed; give it the value you want: {key}=...")
    if override.is_add() and not override.is_force_add():
        raise ConfigError(f"{text}: the setting exists already; write it without the +")
    if override.is_sweep_override() and not several:
        is_list = key in all_keys() and all_keys()[key].type.startswith("list")
        one = f"write a list as {key}=[a,b]" if is_list else "choose one"
        raise ConfigError(f"{text} gives several values and a run takes one: {one}, or add -m for a run with each")
    if key in known_groups:
        _check_option(key, override)


def parsed(text: str) -> Override:
    """Return an override in Hydra's grammar."""
    if text.startswith("-"):
        raise ConfigError(f"{text} is not a setting: settings are written key=value, without dashes")
    try:
        override = OverridesParser.create().parse_override(text)
    except (HydraException, ValueError) as error:  # Python refuses whole numbers of more than 4,300 digits
        raise ConfigError(_unreadable(text)) from error
    if not override.key_or_group:
        raise ConfigError(_unreadable(text))
    return override


def _unreadable(text: str) -> str:
    return f"cannot read {text!r}: write key=value, and quote a value with special characters: key='a b, c=d'"


def _check_option(group: str, override: Override) -> None:
    if override.is_sweep_override() and not override.is_choice_sweep():
        return  # such as glob(*), of which Hydra takes what there is
    known = options(group)
    values = override.sweep_string_iterator() if override.is_sweep_override() else [override.get_value_string()]
    for value in values:
        if value.strip("'\"") not in known:
            close = difflib.get_close_matches(value, known, n=1, cutoff=0.6)
            hint = f"did you mean {group}={close[0]}?" if close else f"choose from {', '.join(known)}"
            raise ConfigError(f"there is no {group}={value}; {hint}")
