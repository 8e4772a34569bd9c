"""Packages that only some settings need: import them, and install them first if make says how."""

import importlib
import os
import shlex
import subprocess
import sys
from typing import Any

from nmt.discovery import features
from nmt.errors import UserError

INSTALL_COMMAND = "NMT_INSTALL"
"""Environment variable with the command that installs a missing package; make sets it for the targets that may."""


def import_optional(module: str) -> Any:
    """Import a module of an optional package; install the package first if the environment says how."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        if not os.environ.get(INSTALL_COMMAND):
            command = install_command(_requirement(package))
            raise UserError(f"this needs the package {package}: {command}") from error
    _install(_requirement(package))
    return importlib.import_module(module)


def install_command(requirement: str) -> str:
    """Return the command that installs a package in this environment."""
    return f"{shlex.quote(sys.executable)} -m pip install '{requirement}'"


def _requirement(package: str) -> str:
    """Return what pip installs to provide a package, as a feature declares it."""
    declared = (each.packages.get(package) for each in features().values())
    return next(filter(None, declared), package)


def _install(requirement: str) -> None:
    command = [*shlex.split(os.environ[INSTALL_COMMAND]), requirement]
    print(f"installing {requirement}, which these settings need", file=sys.stderr, flush=True)
    if code := subprocess.run(command, check=False).returncode:
        raise UserError(
            f"{requirement} could not be installed (exit code {code}; pip's message is above): "
            f"run {shlex.join(command)} with network access, or choose settings that do without it"
        )
    importlib.invalidate_caches()
