"""Find the checkpoint that a run begins from."""

import json
from pathlib import Path

from nmt.config.folders import expanded
from nmt.config.saved import from_yaml, read_saved
from nmt.config.tree import Config
from nmt.errors import UserError, nearest
from nmt.runs.checkpoints import Checkpoints, resolve
from nmt.runs.layout import AVERAGED, BEST, LAST, META, SETTINGS, RunLayout


def find_origin(config: Config) -> Path:
    """Return the folder of the checkpoint that training.init_from names."""
    name = config.training.init_from
    for folder in (config.runs_folder / name, expanded(name)):
        if (folder / META).is_file():
            return folder
        if RunLayout(folder).checkpoints.is_dir():
            return _of_run(folder, config)
    raise UserError(
        f"training.init_from={name} is neither a run in {config.paths.outputs} nor a checkpoint: {_hint(config)}"
    )


def tokenizer_folder(config: Config) -> Path:
    """Return the folder of the tokenizer of the model to begin from.

    If the run has begun and keeps that tokenizer, its own checkpoint has it, so the model is not needed again.
    """
    begun = Checkpoints(config.run_folder).steps()
    return begun[-1].path if begun and config.training.init_vocabulary == "old" else find_origin(config)


def settings_of_origin(config: Config) -> Config | None:
    """Return the settings of the model to begin from, or of the run once it has begun; None if there is no such file.

    The command reports a missing model if it needs it.
    """
    try:
        begun = Checkpoints(config.run_folder).steps()
        folder = begun[-1].path if begun else find_origin(config)
        return read_saved(folder / SETTINGS, from_yaml)
    except (UserError, OSError, ValueError):
        return None


def _of_run(folder: Path, config: Config) -> Path:
    """Return the checkpoint of a run to begin from: the average, else the best, else the last."""
    if folder.resolve() == config.run_folder.resolve():
        raise UserError(f"training.init_from={config.training.init_from} is this run itself: give it another name=")
    if RunLayout(folder).averaged.is_dir():
        return resolve(folder, AVERAGED)
    validated = any(checkpoint.valid for checkpoint in Checkpoints(folder).steps())
    return resolve(folder, BEST if validated else LAST)


def _hint(config: Config) -> str:
    """Say what to do about a model to begin from that does not exist."""
    name = config.training.init_from
    if _is_hugging_face(expanded(name)):
        return f"import it first with `nmt import input={name}`"
    runs = sorted(path.parent.name for path in config.runs_folder.glob("*/checkpoints"))
    return nearest(name, runs) if runs else "train that run first, or name the folder of a checkpoint"


def _is_hugging_face(folder: Path) -> bool:
    try:
        return "model_type" in json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, RecursionError):
        return False
