"""Compose and read settings quickly: the tests do both a thousand times."""

import os
import pickle
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from functools import cache, wraps
from pathlib import Path

from hydra._internal.config_repository import CachingConfigRepository, ConfigRepository

import nmt.config.compose
from nmt.config import saved
from nmt.config.conf_folder import CONFIG_DIR
from nmt.config.schema import Config


def make_settings_quick() -> None:
    """Remember settings that were composed or read; call this before other modules import these functions."""
    _remember_files()
    nmt.config.compose.compose = _remembering(nmt.config.compose.compose)  # type: ignore[assignment]
    tree = pickle.dumps(saved.schema_tree())
    saved.schema_tree = lambda: pickle.loads(tree)
    read = cache(saved.from_yaml)
    saved.from_yaml = lambda text: deepcopy(read(text))


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
