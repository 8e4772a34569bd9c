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
    "onnxruntime-web@1.30.0",
    "@huggingface/transformers@4.3.1",
    "@browsermt/bergamot-translator@0.4.9",
    "axe-core@4.14.1",
)
ARGOS = ROOT / ".venv" / "argos"
ARGOS_TRANSLATE = "argostranslate==1.11.0"


def install_clients(context: Context) -> None:
    """Install the npm packages, if there is npm, and Argos Translate, whose packages conflict with others."""
    if shutil.which("npm"):
        context.say(f"installing {', '.join(NPM_PACKAGES)}")
        NODE.mkdir(exist_ok=True)
        words = ("--prefix", NODE, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save")
        context.run("npm", "install", *words, *NPM_PACKAGES, cwd=NODE)
    else:
        context.skipped["clients: npm is missing"] += 1
    context.say(f"installing {ARGOS_TRANSLATE}")
    if not _python().exists():
        context.run(sys.executable, "-m", "venv", ARGOS)
    torch = context.folder / "torch.txt"
    torch.write_text(locked("torch"), encoding="utf-8")
    try:
        context.run(_python(), *PIP, "--constraint", torch, ARGOS_TRANSLATE)
    except StageError:
        context.skipped["clients: Argos Translate cannot be installed here"] += 1


def _python() -> Path:
    return ARGOS / "bin" / "python"


def client_variables() -> Mapping[str, str]:
    """Return the variables by which tests find the clients that are installed."""
    places = {"NODE_MODULES": NODE_MODULES, "ARGOS_PYTHON": _python()}
    return {name: str(place) for name, place in places.items() if place.exists()}
