"""Compose settings quickly: the tests do it a thousand times, and Hydra reads its 21 files each time."""

import pickle
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import wraps
from pathlib import Path

from hydra._internal.config_repository import ConfigRepository

import nmt.config.compose
from nmt.config.schema import Config


def compose_quickly() -> None:
    """Remember what was composed and which files were read; call this before other modules import `compose`."""
    _remember_files()
    nmt.config.compose.compose = _remembering(nmt.config.compose.compose)  # type: ignore[assignment]


def _remembering(compose: Callable[[Sequence[str]], Config]) -> Callable[[Sequence[str]], Config]:
    """Compose each list of overrides once."""
    found: dict[tuple[object, ...], Config] = {}

    @wraps(compose)
    def remembering(overrides: Sequence[str]) -> Config:
        key = (*overrides, Path.cwd(), nmt.config.compose.conf_folder())  # type: ignore[attr-defined] # tests replace it
        if key not in found:
            found[key] = compose(overrides)
        return deepcopy(found[key])

    return remembering


def _remember_files() -> None:
    """Read each file of settings once; composing takes half as long then."""
    read = ConfigRepository.load_config
    found: dict[tuple[str | None, ...], bytes] = {}

    def load_config(self: ConfigRepository, config_path: str) -> object:
        key = (*(source.path for source in self.sources), config_path)
        if key not in found:
            found[key] = pickle.dumps(read(self, config_path))  # Hydra changes what it has read
        return pickle.loads(found[key])

    ConfigRepository.load_config = load_config  # type: ignore[method-assign,assignment]
