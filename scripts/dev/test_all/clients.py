"""The stage `clients`: programs that nobody here wrote, which use exports and check the page of the server."""

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from test_all.packages import PIP, locked
from test_all.stages import ROOT, Context, StageError

NODE = ROOT / ".venv" / "node"
NODE_MODULES = NODE / "node_modules"
NPM_PACKAGES = (
    "@huggingface/transformers@4.3.1",
    "axe-core@4.14.1",
)
PYTHON_CLIENTS = {"argos": "argostranslate==1.11.0"}
"""What is installed in an environment of its own, `.venv/NAME`, because its packages conflict with others."""


def install_clients(context: Context) -> None:
    """Install the npm packages, if there is npm, and the programs in Python."""
    if shutil.which("npm"):
        context.say(f"installing {', '.join(NPM_PACKAGES)}")
        NODE.mkdir(exist_ok=True)
        words = ("--prefix", NODE, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save")
        context.run("npm", "install", *words, *NPM_PACKAGES, cwd=NODE)
    else:
        context.skipped["clients: npm is missing"] += 1
    torch = context.folder / "torch.txt"
    torch.write_text(locked("torch"), encoding="utf-8")
    for name, package in PYTHON_CLIENTS.items():
        context.say(f"installing {package}")
        if not _python(name).exists():
            context.run(sys.executable, "-m", "venv", ROOT / ".venv" / name)
        try:
            context.run(_python(name), *PIP, "--constraint", torch, package)
        except StageError:
            context.skipped[f"clients: {package} cannot be installed here"] += 1


def _python(name: str) -> Path:
    return ROOT / ".venv" / name / "bin" / "python"


def client_variables() -> Mapping[str, str]:
    """Return the variables by which tests find the clients that are installed."""
    places = {
        "NODE_MODULES": NODE_MODULES, **{f"{name.upper()}_PYTHON": _python(name) for name in PYTHON_CLIENTS},
    }  # fmt: skip
    return {name: str(place) for name, place in places.items() if place.exists()}
