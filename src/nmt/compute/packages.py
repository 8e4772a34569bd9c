"""Packages that only some settings need: import them, and install them first if make says how."""

import importlib
import os
import shlex
import subprocess
import sys
from typing import Any

from nmt.errors import UserError, has_makefile

REQUIREMENTS = {
    "ctranslate2": "ctranslate2>=4.5",
    "onnx": "onnx>=1.17",
    "onnxruntime": "onnxruntime>=1.20",
    "prometheus_client": "prometheus-client>=0.21",
    "py3langid": "py3langid>=0.4",
    "python_multipart": "python-multipart>=0.0.20",
    "starlette": "starlette>=0.46",
    "tokenizers": "tokenizers>=0.21",
    "transformers": "transformers>=5",
    "uvicorn": "uvicorn>=0.34",
}
"""The requirement of each package, as in the extras of pyproject.toml."""
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
            command = f"{sys.executable} -m pip install '{REQUIREMENTS[package]}'"
            made = "make installs it with this target, or " if has_makefile() else ""
            raise UserError(f"this needs the package {package}: {made}{command}") from error
    _install(REQUIREMENTS[package])
    return importlib.import_module(module)


def _install(requirement: str) -> None:
    command = [*shlex.split(os.environ[INSTALL_COMMAND]), requirement]
    print(f"installing {requirement}, which these settings need", file=sys.stderr, flush=True)
    if code := subprocess.run(command, check=False).returncode:
        raise UserError(
            f"{requirement} could not be installed (exit code {code}; pip's message is above): "
            f"run {shlex.join(command)} with network access, or choose settings that do without it"
        )
    importlib.invalidate_caches()
