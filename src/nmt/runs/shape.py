"""Take the shape of the model that a run begins from."""

from collections.abc import Container
from dataclasses import fields, replace

from nmt.config.checks import ONLY_IN_TRAINING, marked
from nmt.config.model import ModelConfig
from nmt.config.tree import Config


def with_shape_of_origin(config: Config, given: Container[str]) -> Config:
    """Return the settings with the shape of the model that training begins from, or of the run once it has begun.

    Args:
        config: All settings.
        given: The settings and groups that the user gives; they keep their values, and training compares them later.
    """
    from nmt.runs.origin import settings_of_origin  # noqa: PLC0415 - imports torch

    origin = settings_of_origin(config)
    if origin is None:
        return config
    not_of_the_shape = marked(ModelConfig, ONLY_IN_TRAINING)
    taken = {
        each.name: getattr(origin.model, each.name)
        for each in fields(ModelConfig)
        if each.name not in not_of_the_shape and f"model.{each.name}" not in given
    }
    if "model.layers" in given:  # the number of layers of both stacks
        taken = {name: value for name, value in taken.items() if name not in ("encoder_layers", "decoder_layers")}
    joint = config.tokenizer.joint if "tokenizer.joint" in given else origin.tokenizer.joint
    return replace(config, model=replace(config.model, **taken), tokenizer=replace(config.tokenizer, joint=joint))
