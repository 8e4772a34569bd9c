"""What an export needs that is not there: an option the target knows, a package."""

from importlib import import_module
from typing import Any, NoReturn

from nmt.errors import UserError


def refuse(target: str, option: str, value: object, known: str) -> NoReturn:
    """Say which option of the model the target cannot express, and what it can."""
    raise UserError(
        f"export.target={target} cannot express {option}={value}, only {known}: "
        "choose another export.target, or train a model with that"
    )


def extra(module: str, package: str) -> Any:
    """Import what only some exports need."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise UserError(f"this needs the package {package}: .venv/bin/python -m pip install {package}") from error
