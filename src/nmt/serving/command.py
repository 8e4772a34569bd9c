"""`nmt serve`: answer translation requests over HTTP."""

from collections.abc import Container
from dataclasses import fields

from nmt.config.decoding import DecodingConfig
from nmt.config.tree import Config
from nmt.errors import ConfigError
from nmt.packages import import_optional


def run(config: Config) -> None:
    """Serve models until SIGTERM or Ctrl-C, then finish the open requests."""
    for package in ("starlette", "uvicorn", "prometheus_client"):
        import_optional(package)
    from nmt.serving.server import serve  # noqa: PLC0415 - needs the packages

    serve(config)


def check_served_models(given: Container[str]) -> None:
    """Refuse settings of a model that the user gives, but that have no effect on the models of `serve.models`."""
    names = ("checkpoint", "engine", "decoding", *(f"decoding.{each.name}" for each in fields(DecodingConfig)))
    if ignored := [name for name in names if name in given]:
        raise ConfigError(
            f"serve.models and {', '.join(ignored)}: each of these models has a checkpoint, an engine and a search of "
            "its own; leave out the one or the other, or name the folder of a checkpoint or an export in serve.models"
        )
