"""The check of settings that have no effect on the models of a server."""

from collections.abc import Container
from dataclasses import fields

from nmt.config.tree import Config
from nmt.errors import ConfigError


def checked(config: Config, given: Container[str]) -> Config:
    """Return the settings; refuse those of a model that have no effect on the models of `serve.models`."""
    names = ("checkpoint", "engine", "decoding", *(f"decoding.{each.name}" for each in fields(config.decoding)))
    ignored = [name for name in names if name in given]
    if config.serve.models and ignored:
        raise ConfigError(
            f"serve.models and {', '.join(ignored)}: each of these models has a checkpoint, an engine and a search of "
            "its own; leave out the one or the other, or name the folder of a checkpoint or an export in serve.models"
        )
    return config
