"""The folders of scores: `eval/` for the run's own checkpoint and search, and folders inside it for any other."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nmt.config.decoding import NOT_OF_THE_SEARCH, DecodingConfig
from nmt.config.keys import plain_name, settings_name
from nmt.config.saved import read_saved, read_settings
from nmt.config.tree import Config
from nmt.runs.layout import RunLayout, step_folder_name, step_of_name


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
    folder, export = RunLayout(config.run_folder).evaluation, config.export
    if config.engine == "ctranslate2":
        return folder / plain_name(export.folder or f"{export.target}-{export.quantization}")
    name = _model_name(config.checkpoint, config.decoding.ensemble)
    if config.engine == "int8":
        return folder / f"{name}-int8"
    saved = _saved_settings(config.run_folder)
    own = _model_name(saved.get("checkpoint", Config().checkpoint), saved.get("decoding.ensemble") or [])
    return folder if name == own else folder / name


def _model_name(checkpoint: str, ensemble: Sequence[str]) -> str:
    """Return the name of checkpoints, of which each step has one spelling."""
    names = [str(name) for name in (checkpoint, *ensemble)]
    steps = [step_of_name(name) for name in names]
    return plain_name(
        "+".join(name if step is None else step_folder_name(step) for name, step in zip(names, steps, strict=True))
    )


def search_settings(decoding: DecodingConfig) -> dict[str, object]:
    """Return the settings of the search by name."""
    return {key: value for key, value in asdict(decoding).items() if key not in NOT_OF_THE_SEARCH}


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
