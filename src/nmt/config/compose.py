"""Compose `conf/` and the overrides of the command line into one frozen, checked Config, with Hydra.

The user's own folders of settings come before the package's `conf/`, so a file in them can add a name or replace one.
Every mistake in a setting becomes a ConfigError of one line.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
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
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from nmt import DISTRIBUTION
from nmt.config import registry
from nmt.config.folders import local_folder
from nmt.config.keys import unknown_setting, value_of
from nmt.config.saved import to_config
from nmt.config.tree import Config
from nmt.errors import ConfigError, nearest

ROOT = "nmt"
"""The name of the file in `conf/` that chooses all others."""
CONFIG_DIR = "NMT_CONFIG_DIR"
"""The environment variable that names the user's folder of settings; `--config-dir` sets it."""


class OwnFolders(SearchPathPlugin):
    """Puts the user's folders of settings before the package's."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Add the folders, the first of which wins."""
        for folder in own_folders():
            search_path.prepend(provider="own", path=f"file://{folder}", anchor="main")


@cache
def conf_folder() -> Path:
    """Return `conf/`: inside an installed package, or at the top of the repository."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "conf"
    return packaged if packaged.is_dir() else package.parents[1] / "conf"


def own_folders() -> list[Path]:
    """Return the user's folders of settings, the first of which wins: the one that is named, and `conf/` here."""
    named = os.environ.get(CONFIG_DIR)
    if named and not Path(named).is_dir():
        raise ConfigError(f"there is no folder {named}: correct --config-dir, or {CONFIG_DIR}")
    found = [Path(each).resolve() for each in (named, "conf") if each and Path(each).is_dir()]
    return [each for each in dict.fromkeys(found) if each != conf_folder()]


def options(group: str) -> list[str]:
    """Return the names of the files in a group, as they are written on the command line."""
    folders = [folder / group for folder in (*own_folders(), conf_folder())]
    return sorted({f.relative_to(each).with_suffix("").as_posix() for each in folders for f in each.rglob("*.yaml")})


def compose(overrides: Sequence[str]) -> Config:
    """Return the settings that `conf/` and these overrides (`training.steps=3`, `model=big`) give."""
    register()
    outer, GlobalHydra.instance().hydra = GlobalHydra.instance().hydra, None  # that of a job, which may compose, too
    try:
        with one_line_errors(), hydra.initialize_config_dir(str(conf_folder()), version_base="1.3"):
            return config_of(hydra.compose(ROOT, overrides=list(overrides)))
    finally:
        GlobalHydra.instance().hydra = outer


def config_of(tree: DictConfig) -> Config:
    """Return what Hydra has composed as a frozen, checked Config; code that it names, mine:Lion, may be imported."""
    with open_dict(tree):
        tree.pop("hydra", None)
    config: Config = to_config(OmegaConf.to_container(tree, resolve=True))
    for setting in registry.CHOICES:
        if ":" in (value := value_of(config, setting)):
            registry.trust(setting, value)
    return config


def given_settings(overrides: Sequence[str]) -> frozenset[str]:
    """Return the settings and groups (`training.steps`, `model`) that these overrides name, without their values."""
    return frozenset(str(each.key_or_group) for each in parsed(overrides))


def parsed(overrides: Sequence[str]) -> list[Override]:
    """Return overrides in Hydra's grammar."""
    with one_line_errors():
        return OverridesParser.create().parse_overrides(list(overrides))


@cache
def register() -> None:
    """Register with Hydra the defaults of all settings, and what finds the user's folders."""
    schema = OmegaConf.create(asdict(Config()))
    OmegaConf.set_struct(schema.data.mixture, value=False)  # the user names the corpora in it
    ConfigStore.instance().store("schema", schema, provider="nmt")
    # a launcher may have brought the functions to this process
    OmegaConf.register_new_resolver("folder_name", _folder_name, replace=True)
    OmegaConf.register_new_resolver("local_folder", lambda name: str(local_folder(name)), replace=True)
    Plugins.instance().register(OwnFolders)


def _folder_name(path: str) -> str:
    """Return the name of a folder, as a name for a run; the usual name if no folder is given."""
    return Path(path).resolve().name if path else Config().name


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn whatever Hydra, OmegaConf and YAML raise about settings into a ConfigError of one line."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, OSError, ValueError, RecursionError) as error:
        raise ConfigError(_explain(error)) from error


def _explain(error: Any) -> str:
    text = " ".join(re.split(r"\s+full_key:|\nSee https", str(error))[0].split())
    match error:
        case MissingConfigException(missing_cfg_file=str(file)) if "/" in file:
            return _missing_option(*_group_and_name(file))
        case OverrideParseException(override=str(word)):
            return f"cannot read {word!r} ({text}): quote a value with special characters: key='a b, c=d'"
    if found := re.match(r"Could not override '([^']+)'", text):
        return unknown_setting(found[1])
    key = getattr(error, "full_key", None)
    return f"{key} cannot be resolved: {text}" if key else text


def _group_and_name(file: str) -> tuple[str, str]:
    """Return the group and the name of a file of settings, such as hydra/launcher/joblib or experiment/table3/a1."""
    parts = file.split("/")
    length = 2 if parts[0] == "hydra" else 1
    return "/".join(parts[:length]), "/".join(parts[length:])


def _missing_option(group: str, name: str) -> str:
    if group.startswith("hydra/"):
        how = f"`pip install '{DISTRIBUTION}[cluster,search]'` adds joblib, submitit_local, submitit_slurm and search"
        return f"{group}={name} is not known or not installed: {how}"
    return f"there is no {group}={name}; {nearest(name, options(group))}"
