"""The folders of scores: `eval/` for the run's own checkpoint and search, and folders inside it for any other."""

import os
from dataclasses import asdict, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from nmt.config.checks import NOT_OF_THE_SEARCH
from nmt.config.decoding import DecodingConfig
from nmt.config.keys import settings_name
from nmt.config.saved import read_saved, read_settings
from nmt.config.tree import Config
from nmt.runs.layout import AVERAGED, BEST, EXPORTS, LAST, RunLayout, export_folder, step_folder_name, step_of_name

MAX_NAME_CHARACTERS, MAX_NAME_BYTES = 100, 180
"""Longer names of files and folders are cut because file systems refuse them."""


def scores_folder(config: Config) -> Path:
    """Return the folder for the scores of the model that the settings name.

    This is `eval/` for the checkpoint that the settings of the training name, else `eval/<model>/`. Settings of the
    search that differ from those of the training have a folder in it, such as `eval/beam_1/`.
    """
    return _model_folder(config) / _search_name(config)


def scores_to_show(config: Config) -> Path:
    """Return the folder of the scores to show: unless the settings name another model or search, those in `eval/`."""
    named, usual = (config.checkpoint, config.engine, config.decoding.ensemble), Config()
    is_usual = named == (usual.checkpoint, usual.engine, usual.decoding.ensemble)
    folder = RunLayout(config.run_folder).evaluation if is_usual else _model_folder(config)
    folders = [folder, folder / _search_name(config)]
    if search_settings(config.decoding) != search_settings(usual.decoding):
        folders.reverse()
    return next((each for each in folders if any(each.glob("*.json"))), folder)


def _model_folder(config: Config) -> Path:
    """Return the folder of the scores of a model with the search of its training."""
    run_folder, folder = config.run_folder, RunLayout(config.run_folder).evaluation
    if config.engine == "ctranslate2":
        return folder / short_name(path_name(export_folder(config), run_folder / EXPORTS))
    name = _checkpoints_name(run_folder, [config.checkpoint, *config.decoding.ensemble])
    if config.engine == "int8":
        return folder / f"{name}-int8"
    return folder if name == _own_name(run_folder) else folder / name


def search_settings(decoding: DecodingConfig) -> dict[str, object]:
    """Return the settings of the search by name."""
    others = {each.name for each in fields(decoding) if NOT_OF_THE_SEARCH.keys() & each.metadata.keys()}
    return {key: value for key, value in asdict(decoding).items() if key not in others}


def _search_name(config: Config) -> str:
    """Return a name of the settings of the search that differ from those of the training; empty if none does."""
    saved, usual = _saved_settings(config.run_folder), search_settings(Config().decoding)
    if not saved:
        return ""
    differing = {
        key: value
        for key, value in search_settings(config.decoding).items()
        if value != saved.get(f"decoding.{key}", usual[key])
    }
    return settings_name(differing)


def _saved_settings(run_folder: Path) -> dict[str, Any]:
    """Return the settings of the training by their dotted keys; empty if they are not there."""
    file = RunLayout(run_folder).settings
    return read_saved(file, read_settings) if file.is_file() else {}


def _own_name(run_folder: Path) -> str:
    """Return the name of what `eval` scores without settings for checkpoint, ensemble and engine."""
    saved = _saved_settings(run_folder)
    ensemble = saved.get("decoding.ensemble") or []
    return _checkpoints_name(run_folder, [saved.get("checkpoint", Config().checkpoint), *ensemble])


def _checkpoints_name(run_folder: Path, names: list[str]) -> str:
    return short_name("+".join(_checkpoint_name(run_folder, str(name)) for name in names))


def _checkpoint_name(run_folder: Path, name: str) -> str:
    """Return the name of a checkpoint as users type it: last, best, averaged, a step or a folder anywhere."""
    step = step_of_name(name)
    if step is not None:
        return step_folder_name(step)
    home = RunLayout(run_folder).checkpoints
    in_home = name in (LAST, BEST, AVERAGED) or (home / name).is_dir()
    return path_name(home / name if in_home else Path(name), home)


def path_name(path: Path, home: Path) -> str:
    """Return the last component of a path, with a digest if the path is not in `home`, to keep names unique."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - `resolve` would turn the link `last` into a step
    if absolute.parent == Path(os.path.abspath(home)):  # noqa: PTH100
        return absolute.name
    return f"{absolute.name}-{_digest(str(absolute))}"


def short_name(name: str) -> str:
    """Return the name of a file or folder, cut and with a digest if file systems might refuse it."""
    encoded = name.encode()
    if len(name) <= MAX_NAME_CHARACTERS and len(encoded) <= MAX_NAME_BYTES:
        return name
    return f"{encoded[:MAX_NAME_CHARACTERS].decode(errors='ignore')}-{_digest(name)}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:8]
