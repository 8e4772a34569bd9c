"""What an export needs that is not there: an option the target knows, a package."""

import importlib
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from nmt.config.choices import CHOICES
from nmt.config.schema import ModelConfig
from nmt.errors import UserError

REQUIREMENTS = {"ctranslate2": "ctranslate2>=4.5", "transformers": "transformers>=5"}
"""Packages that only some exports need, as pyproject.toml's extras ask for them."""
INSTALL = "NMT_INSTALL"
"""Environment variable that holds the command by which a missing package is installed."""


def refuse(target: str, option: str, value: object, known: str) -> NoReturn:
    """Say which option of the model the target cannot express, and what it can."""
    raise UserError(
        f"export.target={target} cannot express {option}={value}, only {known}: "
        "choose another export.target, or train a model with that"
    )


def check_choices(target: str, config: ModelConfig, known: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse registered choices of the model that the target does not know: if it names none, all but the default."""
    for setting in CHOICES:
        group, _, field = setting.partition(".")
        if group == "model":
            value, values = getattr(config, field), known.get(field, (getattr(ModelConfig(), field),))
            if value not in values:
                refuse(target, setting, value, " or ".join(values))


def extra(module: str) -> Any:
    """Import what only some exports need; install it first if whoever started us says how (`make export` does)."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        if not os.environ.get(INSTALL):
            command = f".venv/bin/python -m pip install '{REQUIREMENTS[package]}'"
            raise UserError(f"this needs the package {package}: `make export` installs it, or {command}") from error
    _install(REQUIREMENTS[package])
    return importlib.import_module(module)


def _install(requirement: str) -> None:
    command = [*shlex.split(os.environ[INSTALL]), requirement]
    print(f"installing {requirement}, which this export needs", file=sys.stderr, flush=True)
    if code := subprocess.run(command, check=False).returncode:
        raise UserError(
            f"{requirement} could not be installed (exit code {code}; what pip said is above): "
            f"run {shlex.join(command)} with a network, or choose another export.target"
        )
    importlib.invalidate_caches()
