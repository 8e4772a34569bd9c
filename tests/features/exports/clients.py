"""Programs that nobody here wrote, which translate with exports: npm packages under Node, and Argos Translate.

NODE_MODULES names the `node_modules` of the npm packages, and ARGOS_PYTHON a Python that has `argostranslate`.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
NODE = shutil.which("node")
NODE_MODULES = os.environ.get("NODE_MODULES", "")
ARGOS_PYTHON = os.environ.get("ARGOS_PYTHON", "")
TRANSFORMERS_JS = "@huggingface/transformers"
needs_node = pytest.mark.skipif(not NODE, reason="needs Node")
needs_argos = pytest.mark.skipif(not ARGOS_PYTHON, reason="needs ARGOS_PYTHON")
ARGOS_CLIENT = """
import json, socket, sys, time
def refuse(*_):
    raise OSError("this program is offline")
socket.socket.connect = socket.getaddrinfo = refuse
from argostranslate import package, translate
package.install_from_path(sys.argv[1])
question = json.load(sys.stdin)
translate.translate("", question["source"], question["target"])
began = time.perf_counter()
found = [translate.translate(line, question["source"], question["target"]) for line in question["lines"]]
print(json.dumps({"found": found, "seconds": time.perf_counter() - began}))
"""


def needs_package(name: str) -> pytest.MarkDecorator:
    """Return what skips a test without an npm package."""
    found = bool(NODE and NODE_MODULES) and (Path(NODE_MODULES) / name).is_dir()
    return pytest.mark.skipif(not found, reason=f"needs NODE_MODULES with {name}")


def ask(script: Path, words: Sequence[object], question: object, folder: Path) -> Any:
    """Return what a script answers under Node, which runs in `folder`."""
    found = subprocess.run(
        [NODE or "node", script, *map(str, words)], input=json.dumps(question), text=True, cwd=folder,
        capture_output=True, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout.strip().rpartition("\n")[2].removeprefix("answer: "))


def transformers_js(folder: Path, dtype: str, lines: Sequence[str], extra_length: int, workspace: Path) -> Any:
    """Translate lines with transformers.js: return `found`, with ids and texts, and `seconds`."""
    (workspace / "models").mkdir()
    (workspace / "models" / "own").symlink_to(folder.resolve())
    (workspace / "node_modules").symlink_to(Path(NODE_MODULES).resolve())
    question = {"dtype": dtype, "extra_length": extra_length, "lines": list(lines)}
    script = shutil.copy(HERE / "transformers_js_client.mjs", workspace)  # Node looks for packages beside it
    return ask(Path(script), [workspace / "models"], question, workspace)


def argos(package: Path, languages: tuple[str, str], lines: Sequence[str], workspace: Path) -> Any:
    """Install a package in Argos Translate and translate lines with it: return `found` and `seconds`."""
    places = {f"XDG_{kind}_HOME": str(workspace / kind) for kind in ("DATA", "CONFIG", "CACHE")}
    question = {"source": languages[0], "target": languages[1], "lines": list(lines)}
    found = subprocess.run(
        [ARGOS_PYTHON, "-c", ARGOS_CLIENT, package], input=json.dumps(question), text=True, capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(workspace), "OMP_NUM_THREADS": "1", **places}, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout.splitlines()[-1])
