"""Packages that only some settings need: import them, and install them first if make says how."""

import importlib
import os
import shlex
import subprocess
import sys
from importlib.util import find_spec
from typing import Any, NamedTuple

from nmt.errors import UserError

INSTALL_COMMAND = "NMT_INSTALL"
"""Environment variable with the command that installs a missing package; make sets it for the targets that may."""


class Package(NamedTuple):
    """An optional package."""

    requirement: str
    """What pip installs."""
    purpose: str
    """What needs it, in a few words."""


PACKAGES = {
    "ctranslate2": Package("ctranslate2>=4.5", "export.target=ctranslate2 and argos, engine=ctranslate2"),
    "onnx": Package("onnx>=1.17", "export.target=onnx, web and argos"),
    "onnxruntime": Package("onnxruntime>=1.20", "export.target=onnx and web"),
    "tokenizers": Package("tokenizers>=0.21", "export.target=onnx and web"),
    "transformers": Package("transformers>=5", "export.target=huggingface, and teachers in a folder"),
    "starlette": Package("starlette>=0.46", "nmt serve"),
    "uvicorn": Package("uvicorn>=0.34", "nmt serve"),
    "prometheus_client": Package("prometheus-client>=0.21", "nmt serve"),
    "httpx": Package("httpx>=0.27", "teacher.url"),
    "py3langid": Package("py3langid>=0.4", "the filter of languages, and teachers"),
    "comet": Package("unbabel-comet>=2.2", "COMET"),
    "tensorboard": Package("tensorboard>=2.18", "tracking.tensorboard=true"),
    "ray": Package("ray>=2.40", "data.engine=ray"),
    "s3fs": Package("s3fs>=2025.3", "addresses such as s3://bucket"),
    "gcsfs": Package("gcsfs>=2025.3", "addresses such as gs://bucket"),
    "adlfs": Package("adlfs>=2026.8", "addresses such as az://container"),
    "aiohttp": Package("aiohttp>=3.9", "addresses such as https://example.org"),
    "hydra_plugins.hydra_optuna_sweeper": Package("hydra-optuna-sweeper>=1.3", "hydra/sweeper=search"),
    "hydra_plugins.hydra_submitit_launcher": Package("hydra-submitit-launcher>=1.2", "hydra/launcher=submitit_slurm"),
}
"""By the name to import."""


def import_optional(module: str) -> Any:
    """Import a module of an optional package; install the package first if the environment says how."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        requirement = PACKAGES[package].requirement if package in PACKAGES else package
        if not os.environ.get(INSTALL_COMMAND):
            raise UserError(f"this needs the package {package}: {install_command(requirement)}") from error
    command = [*shlex.split(os.environ[INSTALL_COMMAND]), requirement]
    print(f"installing {requirement}, which these settings need", file=sys.stderr, flush=True)
    if subprocess.run(command, check=False).returncode:
        raise UserError(
            f"{requirement} could not be installed; pip's message is above: run {shlex.join(command)} with network "
            "access, or choose settings that do without it"
        )
    importlib.invalidate_caches()
    return importlib.import_module(module)


def install_command(requirement: str) -> str:
    """Return the command that installs a package in this environment."""
    return f"{shlex.quote(sys.executable)} -m pip install '{requirement}'"


def is_installed(module: str) -> bool:
    """Return whether Python finds a module, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # no package above it
        return False
