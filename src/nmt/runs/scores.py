"""The folders of scores: `eval/` for the run's own checkpoint and search, and folders inside it for any other."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from nmt.config.decoding import NOT_OF_THE_SEARCH, DecodingConfig
from nmt.config.keys import plain_name, settings_name
from nmt.config.saved import load_settings
from nmt.config.tree import Config
from nmt.runs.layout import RunLayout, step_folder_name, step_of_name


def scores_folder(config: Config) -> Path:
    """Return the folder for the scores of the model that the settings name.

    This is `eval/` for the checkpoint that the settings of the training name, else `eval/<model>/`. Settings of the
    search that differ from those of the training have a folder in it, such as `eval/beam_1/`.
    """
    layout, export = RunLayout(config.run_folder), config.export
    saved = load_settings(layout.settings) if layout.settings.is_file() else {}
    name = _model_name(config.checkpoint, config.decoding.ensemble)
    own = _model_name(saved.get("checkpoint", Config().checkpoint), saved.get("decoding.ensemble") or [])
    if config.engine == "ctranslate2":
        name = plain_name(export.folder or f"{export.target}-{export.quantization}")
    elif config.engine == "int8":
        name = f"{name}-int8"
    usual = search_settings(DecodingConfig())
    search = {
        key: value
        for key, value in search_settings(config.decoding).items()
        if saved and value != saved.get(f"decoding.{key}", usual[key])
    }
    return layout.evaluation / (name if name != own else "") / settings_name(search)


def scores_to_show(config: Config) -> Path:
    """Return the folder of the scores to show: as the settings say if it has any, else that of the usual search."""
    named, usual = scores_folder(config), RunLayout(config.run_folder).evaluation
    folders = [each for each in (named, *named.parents) if each.is_relative_to(usual)]
    return next((each for each in folders if any(each.glob("*.json"))), usual)


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
