"""The web export in a real browser, without a network: it gives the greedy translations of our own engine."""

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from nmt.config.saved import to_yaml
from nmt.config.schema import Config
from nmt.decoding.torch_engine import TorchEngine
from nmt.features.exports.exporter import TrainedModel
from nmt.features.exports.onnx import WebExporter
from nmt.runs.checkpoints import Checkpoints, load
from tests.browser import Browser, console_messages, needs_browser, wait
from tests.features.exports.clients import NODE_MODULES, TRANSFORMERS_JS, needs_package
from tests.features.exports.test_onnx import GREEDY, make_plain_tokenizer
from tests.unit.small_models import LINES, make_model, teach

pytestmark = [pytest.mark.slow, needs_browser, needs_package(TRANSFORMERS_JS)]
IS_READY = "return !document.querySelector('button').disabled"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder as the card says, and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder), str(port)]
    server = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait(10)


def requested(browser: Browser) -> set[str]:
    """Return the origins that the browser has asked since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"]
    return {"/".join(url.split("/")[:3]) for url in urls if url.startswith("http")}


def add_library(folder: Path) -> None:
    """Put the files of transformers.js into an export, as its card says."""
    package = Path(NODE_MODULES) / TRANSFORMERS_JS
    inner = package / "node_modules" / "onnxruntime-web"
    runtime = inner if inner.is_dir() else Path(NODE_MODULES) / "onnxruntime-web"
    shutil.copy(package / "dist" / "transformers.min.js", folder)
    for ending in ("mjs", "wasm"):
        shutil.copy(runtime / "dist" / f"ort-wasm-simd-threaded.asyncify.{ending}", folder)


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_the_page_translates_offline_as_our_greedy_search(browser: Browser, tmp_path: Path, quantization: str) -> None:
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="needs the extra onnx")
    tokenizer = make_plain_tokenizer()
    model = teach(make_model(tokenizer, norm_placement="pre", positions="rotary"), tokenizer, 300)
    settings = Config(name="small", model=model.config)
    saved = Checkpoints(tmp_path / "run").save(
        1, weights=model.state_dict(), trainer={}, tokenizer_files=tokenizer.files, config_text=to_yaml(settings),
        valid={},
    )  # fmt: skip
    folder = tmp_path / "web"
    folder.mkdir()
    WebExporter().write(folder, TrainedModel(load(saved), settings, tokenizer, GREEDY, quantization))
    add_library(folder)
    ours = [each.text for each in TorchEngine([model], tokenizer, GREEDY, torch.device("cpu")).translate(LINES)]
    requested(browser)
    with served(folder) as address:
        browser.get(address)
        wait(browser, IS_READY)
        browser.execute_script("document.forms[0].text.value = arguments[0]", "\n".join(LINES))
        browser.find_element("css selector", "button").click()
        wait(browser, IS_READY)
        shown = browser.execute_script("return document.forms[0].translation.value").split("\n")
        assert requested(browser) == {address.rstrip("/")}
    assert browser.execute_script("return document.querySelector('[role=status]').textContent") == ""
    assert shown == ours
    assert console_messages(browser) == []
