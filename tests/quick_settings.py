"""Compose and read settings quickly: the tests do both a thousand times."""

import os
import pickle
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from functools import cache, wraps
from pathlib import Path

from hydra._internal import config_loader_impl
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_repository import CachingConfigRepository, ConfigRepository
from hydra._internal.defaults_list import DefaultsList, create_defaults_list
from hydra.core.default_element import ResultDefault
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override

import nmt.config.compose
from nmt.config import saved
from nmt.config.conf_folder import CONFIG_DIR
from nmt.config.tree import Config


def make_settings_quick() -> None:
    """Remember settings that were composed or read; call this before other modules import these functions."""
    _remember_files()
    _remember_compositions()
    _remember_overrides()
    nmt.config.compose.compose = _remembering(nmt.config.compose.compose)  # type: ignore[assignment]
    tree = pickle.dumps(saved.schema_tree())
    saved.schema_tree = lambda: pickle.loads(tree)
    read = cache(saved.from_yaml)
    saved.from_yaml = lambda text: deepcopy(read(text))
    write = saved.to_yaml
    from_bytes = cache(lambda settings: write(pickle.loads(settings)))  # Config is not hashable
    saved.to_yaml = lambda config: from_bytes(pickle.dumps(config))


def _remembering(compose: Callable[[Sequence[str]], Config]) -> Callable[[Sequence[str]], Config]:
    """Compose each list of overrides once: it takes 0.1 s."""
    found: dict[tuple[object, ...], Config] = {}

    @wraps(compose)
    def remembering(overrides: Sequence[str]) -> Config:
        own = (Path.cwd(), os.environ.get(CONFIG_DIR), *nmt.config.compose.own_folders())  # type: ignore[attr-defined]
        key = (*overrides, *own, nmt.config.compose.conf_folder())  # type: ignore[attr-defined] # tests replace it
        if key not in found:
            found[key] = compose(overrides)
        return deepcopy(found[key])

    return remembering


def _remember_files() -> None:
    """Read each file of settings once: reading them is half of the time that composing takes."""
    read = ConfigRepository.load_config
    found: dict[tuple[str | None, ...], bytes] = {}

    def load_config(self: ConfigRepository, config_path: str) -> object:
        key = (*(source.path for source in self.sources), config_path)
        if key not in found:
            found[key] = pickle.dumps(read(self, config_path))  # Hydra changes what it has read
        return pickle.loads(found[key])

    def caching(self: CachingConfigRepository, delegate: ConfigRepository) -> None:
        self.delegate, self.cache = copy(delegate), {}  # Hydra copies deeply

    ConfigRepository.load_config = load_config  # type: ignore[method-assign,assignment]
    CachingConfigRepository.__init__ = caching  # type: ignore[method-assign,assignment]


def _remember_compositions() -> None:
    """Compose each choice of files once, and only apply the single values of other command lines to a copy of it."""
    choose_files = create_defaults_list
    merge = ConfigLoaderImpl._compose_config_from_defaults_list
    found: dict[tuple[object, ...], bytes] = {}

    def files(
        repo: ConfigRepository, config_name: str, overrides_list: Sequence[Override], **how: bool
    ) -> DefaultsList:
        values = [
            each for each in overrides_list if not (repo.group_exists(each.key_or_group) or each.is_sweep_override())
        ]
        groups = [each for each in overrides_list if repo.group_exists(each.key_or_group)]
        key = ("files", *_sources(repo), config_name, *(each.input_line for each in groups), *how.values())
        if key not in found:
            found[key] = pickle.dumps(choose_files(repo, config_name, groups, **how))
        chosen: DefaultsList = pickle.loads(found[key])
        return replace(chosen, config_overrides=[*chosen.config_overrides, *values])

    def merged(self: ConfigLoaderImpl, defaults: list[ResultDefault], repo: ConfigRepository) -> object:
        key = ("merged", *_sources(repo), *map(repr, defaults))
        if key not in found:
            found[key] = pickle.dumps(merge(self, defaults, repo))
        return pickle.loads(found[key])

    config_loader_impl.create_defaults_list = files  # type: ignore[attr-defined,assignment]
    ConfigLoaderImpl._compose_config_from_defaults_list = merged  # type: ignore[method-assign,assignment]


def _sources(repo: ConfigRepository) -> list[str | None]:
    return [source.path for source in repo.get_sources()]


def _remember_overrides() -> None:
    """Parse each override once: it takes 1 ms, and Hydra parses again what was parsed to check it."""
    parse = cache(OverridesParser.create().parse_rule)
    OverridesParser.parse_rule = lambda self, s, rule_name: copy(parse(s, rule_name))  # type: ignore[method-assign]
