"""The files of the page besides the model: onnxruntime-web, and the list by which a browser keeps them."""

import hashlib
import shutil
from base64 import b64encode
from pathlib import Path

from nmt.config.folders import expanded
from nmt.errors import UserError
from nmt.page import read_page
from nmt.storage.files import write_json

PACKAGE = "onnxruntime-web"
VERSION = "1.30.0"
"""The version that the tests use."""
INSTALLED = Path("node_modules") / PACKAGE
"""Where npm installs the package, in the current folder."""
RUNTIME = {"onnxruntime.js": "ort.wasm.bundle.min.mjs", "onnxruntime.wasm": "ort-wasm-simd-threaded.wasm"}
"""The files that run the model, and their names in the folder `dist` of the package."""
LISTING = "files.json"
SERVICE_WORKER = "service-worker.js"
POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'"
)
"""The page loads nothing from other hosts, sends nothing to them, and runs no inline script."""
HEAD = f'\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n<link rel="stylesheet" href="web.css">'


def runtime_files(package: str) -> dict[str, Path]:
    """Return the files of onnxruntime-web by their names in the export; `package` is its folder, or empty."""
    folder = expanded(package) if package else INSTALLED
    found = {name: folder / "dist" / original for name, original in RUNTIME.items()}
    for path in found.values():
        if not path.is_file():
            raise UserError(
                f"export.target=web needs the npm package {PACKAGE}, and there is no {path}: run "
                f"`npm install --no-save {PACKAGE}@{VERSION}` here, or name its folder by export.onnxruntime_web=FOLDER"
            )
    return found


def write_page(folder: Path, runtime: dict[str, Path]) -> None:
    """Write the page and what runs the model into a folder that has the model, and list all files."""
    page = read_page(__package__, without_script="It translates in the browser itself.", head=HEAD)
    for name, file in page.items():
        (folder / name).write_bytes(file.content)
    (folder / "runtime").mkdir()
    for name, path in runtime.items():
        shutil.copyfile(path, folder / "runtime" / name)
    version = _write_listing(folder)
    worker = folder / SERVICE_WORKER
    worker.write_text(worker.read_text(encoding="utf-8").replace("${version}", version), encoding="utf-8")


def _write_listing(folder: Path) -> str:
    """List all files but the service worker, which browsers keep themselves; return the version of the export."""
    version, files = hashlib.sha256(), {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != SERVICE_WORKER:
            content = path.read_bytes()
            digest = hashlib.sha256(content).digest()
            version.update(name.encode() + b"\0" + digest)
            files[name] = {"bytes": len(content), "sha256": b64encode(digest).decode()}
    short = version.hexdigest()[:16]
    write_json(folder / LISTING, {"version": short, "files": files})
    return short
