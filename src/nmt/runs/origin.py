"""Find the checkpoint that a run begins from, and take its shape."""

from collections.abc import Container
from dataclasses import fields, replace
from pathlib import Path

from nmt.config.folders import expanded
from nmt.config.model import ONLY_IN_TRAINING, ModelConfig
from nmt.config.saved import load_config
from nmt.config.tree import Config
from nmt.errors import UserError, nearest
from nmt.runs.checkpoints import Checkpoints, resolve
from nmt.runs.copies import fetch_other_run
from nmt.runs.layout import AVERAGED, BEST, LAST, META, SETTINGS, RunLayout


def find_origin(config: Config) -> Path:
    """Return the folder of the checkpoint that training.init_from names; of a run, the average, best or last one."""
    name = config.training.init_from
    fetch_other_run(config, name)
    for folder in (config.runs_folder / name, expanded(name)):
        if (folder / META).is_file():
            return folder
        layout = RunLayout(folder)
        if layout.checkpoints.is_dir():
            if folder.resolve() == config.run_folder.resolve():
                raise UserError(f"training.init_from={name} is this run itself: give it another name=")
            validated = any(checkpoint.valid for checkpoint in Checkpoints(folder).steps())
            return resolve(folder, AVERAGED if layout.averaged.is_dir() else BEST if validated else LAST)
    runs = sorted(path.parent.name for path in config.runs_folder.glob("*/checkpoints"))
    hint = nearest(name, runs) if runs else "train that run first, or name the folder of a checkpoint"
    raise UserError(
        f"training.init_from={name} is neither a run in {config.paths.outputs} nor a checkpoint: {hint} "
        "(`nmt import` makes a run of a model of Hugging Face)"
    )


def tokenizer_folder(config: Config) -> Path:
    """Return the folder of the tokenizer of the model to begin from.

    If the run has begun and keeps that tokenizer, its own checkpoint has it, so the model is not needed again.
    """
    begun = Checkpoints(config.run_folder).steps()
    return begun[-1].path if begun and config.training.init_vocabulary == "old" else find_origin(config)


def with_shape_of_origin(config: Config, given: Container[str]) -> Config:
    """Return the settings with the shape of the model that training begins from, or of the run once it has begun.

    The command reports a missing model if it needs it. The settings and groups that the user has `given` keep their
    values, and training compares them later.
    """
    try:
        begun = Checkpoints(config.run_folder).steps()
        origin = load_config((begun[-1].path if begun else find_origin(config)) / SETTINGS)
    except (UserError, OSError, ValueError):
        return config
    taken = {
        each.name: getattr(origin.model, each.name)
        for each in fields(ModelConfig)
        if each.name not in ONLY_IN_TRAINING and f"model.{each.name}" not in given
    }
    if "model.layers" in given:  # the number of layers of both stacks
        taken = {name: value for name, value in taken.items() if name not in ("encoder_layers", "decoder_layers")}
    joint = config.tokenizer.joint if "tokenizer.joint" in given else origin.tokenizer.joint
    return replace(config, model=replace(config.model, **taken), tokenizer=replace(config.tokenizer, joint=joint))
