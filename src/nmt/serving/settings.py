"""The check of settings that have no effect on the models of a server."""

from collections.abc import Container
from dataclasses import fields

from nmt.config.decoding import DecodingConfig
from nmt.errors import ConfigError


def check_served_models(given: Container[str]) -> None:
    """Refuse settings of a model that the user gives, but that have no effect on the models of `serve.models`."""
    names = ("checkpoint", "engine", "decoding", *(f"decoding.{each.name}" for each in fields(DecodingConfig)))
    ignored = [name for name in names if name in given]
    if ignored:
        raise ConfigError(
            f"serve.models and {', '.join(ignored)}: each of these models has a checkpoint, an engine and a search of "
            "its own; leave out the one or the other, or name the folder of a checkpoint or an export in serve.models"
        )
