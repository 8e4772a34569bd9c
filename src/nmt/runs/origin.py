"""Find the checkpoint that a run begins from, and take its shape."""

import json
from collections.abc import Container
from dataclasses import fields, replace
from pathlib import Path

from nmt.config.checks import ONLY_IN_TRAINING, marked
from nmt.config.saved import from_yaml
from nmt.config.schema import Config, ModelConfig
from nmt.errors import UserError, nearest
from nmt.runs.checkpoint_record import CheckpointRecord
from nmt.runs.checkpoints import AVERAGED, Checkpoint, Checkpoints, resolve
from nmt.runs.layout import BEST, LAST, META, SETTINGS, RunLayout


def find_origin(config: Config) -> Path:
    """Return the folder of the checkpoint that training.init_from names."""
    name = config.training.init_from
    for folder in (Path(config.paths.outputs) / name, Path(name)):
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


def describe_origin(config: Config, checkpoint: Checkpoint) -> CheckpointRecord:
    """Return the record of the checkpoint that a run begins from, under the name that the settings give it."""
    return replace(CheckpointRecord.of(checkpoint), name=config.training.init_from)


def with_shape_of_origin(config: Config, given: Container[str]) -> Config:
    """Return the settings with the shape of the model that training begins from, or of the run once it has begun.

    Args:
        config: Settings that name a model to begin from.
        given: The settings and groups that the user gives; they keep their values, and training compares them later.
    """
    if "model" in given:
        return config
    try:
        begun = Checkpoints(config.run_folder).steps()
        folder = begun[-1].path if begun else find_origin(config)
        origin = from_yaml((folder / SETTINGS).read_text(encoding="utf-8"))
    except (UserError, OSError, ValueError):  # the command reports it if it needs the model
        return config
    taken = {
        each.name: getattr(origin.model, each.name)
        for each in fields(ModelConfig)
        if each.name not in marked(ModelConfig, ONLY_IN_TRAINING) and f"model.{each.name}" not in given
    }
    if "model.layers" in given:  # the number of layers of both stacks
        taken = {name: value for name, value in taken.items() if name not in ("encoder_layers", "decoder_layers")}
    joint = config.tokenizer.joint if "tokenizer.joint" in given else origin.tokenizer.joint
    return replace(config, model=replace(config.model, **taken), tokenizer=replace(config.tokenizer, joint=joint))


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
    if _is_hugging_face(Path(name)):
        return f"import it first with `nmt import source={name}`"
    runs = sorted(path.parent.name for path in Path(config.paths.outputs).glob("*/checkpoints"))
    return nearest(name, runs) if runs else "train that run first, or name the folder of a checkpoint"


def _is_hugging_face(folder: Path) -> bool:
    try:
        return "model_type" in json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, RecursionError):
        return False
