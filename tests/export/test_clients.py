"""Programs that nobody here wrote, without a network, translate with our exports as we do.

NODE_MODULES names the `node_modules` of the npm package @huggingface/transformers, and ARGOS_PYTHON a Python that has
`argostranslate`.
"""

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import sentencepiece

from tests.browser import Browser, console_messages, needs_browser, wait
from tests.export.models import make_trained, native, written
from tests.unit.small_models import LINES

NODE = shutil.which("node")
TRANSFORMERS_JS = Path(os.environ.get("NODE_MODULES", "")) / "@huggingface" / "transformers"
ARGOS_PYTHON = os.environ.get("ARGOS_PYTHON", "")
needs_transformers_js = pytest.mark.skipif(
    not (NODE and TRANSFORMERS_JS.is_dir()), reason="needs Node, and NODE_MODULES with @huggingface/transformers"
)
pytestmark = pytest.mark.slow
MODERN: dict[str, Any] = {"norm_placement": "pre", "positions": "rotary"}
ARGOS_CLIENT = """
import json, socket, sys
def refuse(*_):
    raise OSError("this program is offline")
socket.socket.connect = socket.getaddrinfo = refuse
from argostranslate import package, translate
from minisbd import SBDetect
package.install_from_path(sys.argv[1])
*lines, paragraph = json.load(sys.stdin)
(installed,) = package.get_installed_packages()
splitter = SBDetect(str(installed.package_path / "minisbd" / "splitter.onnx"), use_gpu=False)
print(json.dumps([[translate.translate(line, "en", "de") for line in lines], splitter.sentences(paragraph)]))
"""
NODE_CLIENT = """
import { readFileSync } from "node:fs";
import { AutoModelForSeq2SeqLM, AutoTokenizer, env } from "@huggingface/transformers";
globalThis.fetch = () => { throw new Error("this program is offline"); };
Object.assign(env, { allowRemoteModels: false, localModelPath: process.argv[2] });
const { dtype, lines } = JSON.parse(readFileSync(0, "utf8"));
const tokenizer = await AutoTokenizer.from_pretrained("own");
const model = await AutoModelForSeq2SeqLM.from_pretrained("own", { dtype });
const found = [];
for (const line of lines) {
  const [tokens] = await model.generate(tokenizer(line));
  found.push(tokenizer.decode(tokens, { skip_special_tokens: true }));
}
console.log(JSON.stringify(found));
"""


def answer(words: list[str | Path], question: object, **environment: str) -> Any:
    """Return the last line that a program prints, which is JSON."""
    found = subprocess.run(
        words, input=json.dumps(question), text=True, capture_output=True, env={**os.environ, **environment},
        check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout.splitlines()[-1])


@pytest.mark.skipif(not ARGOS_PYTHON, reason="needs ARGOS_PYTHON")
def test_argos_translate_translates_as_ctranslate2_with_its_search(tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2", reason="needs the extra argos")

    model, _ = make_trained("argos", **MODERN)
    (package,) = written(tmp_path, "argos", model).iterdir()
    places = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("DATA", "CONFIG", "CACHE")}
    paragraph = ["The cat sees Dr. A. Dog.", "Is it small?", "(It is.)", "3 cats see dogs."]
    question = [*LINES, " ".join(paragraph)]
    found, sentences = answer([ARGOS_PYTHON, "-c", ARGOS_CLIENT, package], question, HOME=str(tmp_path), **places)
    assert sentences == paragraph
    with zipfile.ZipFile(package) as archive:
        archive.extractall(tmp_path)
    unpacked = tmp_path / package.stem
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(unpacked / "sentencepiece.model"))
    translator = ctranslate2.Translator(str(unpacked / "model"), compute_type="auto")
    search = {"beam_size": 4, "length_penalty": 0.2, "replace_unknowns": True}
    expected = [translator.translate_batch([pieces.encode(line, out_type=str)], **search)[0] for line in LINES]
    assert found == [pieces.decode_pieces(each.hypotheses[0]) for each in expected]


@needs_transformers_js
@pytest.mark.parametrize(("quantization", "dtype"), [("float32", "fp32"), ("int8", "q8")])
def test_transformers_js_translates_as_our_greedy_search(tmp_path: Path, quantization: str, dtype: str) -> None:
    model, ours = make_trained("onnx", quantization, steps=300, **MODERN)
    (tmp_path / "own").symlink_to(written(tmp_path, "onnx", model))
    (tmp_path / "node_modules").symlink_to(TRANSFORMERS_JS.parents[1].resolve())
    script = tmp_path / "client.mjs"
    script.write_text(NODE_CLIENT, encoding="utf-8")
    found = answer([str(NODE), script, tmp_path], {"dtype": dtype, "lines": LINES})
    assert found == [each.text for each in native("onnx", ours, model).translate(LINES)]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder as the card says, and yield its address."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def requested(browser: Browser) -> set[str]:
    """Return the origins that the browser has asked since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"]
    return {"/".join(url.split("/")[:3]) for url in urls if url.startswith("http")}


def add_library(folder: Path) -> None:
    """Put the files of transformers.js into an export, as its card says."""
    inner = TRANSFORMERS_JS / "node_modules" / "onnxruntime-web"
    runtime = inner if inner.is_dir() else TRANSFORMERS_JS.parents[1] / "onnxruntime-web"
    shutil.copy(TRANSFORMERS_JS / "dist" / "transformers.min.js", folder)
    for ending in ("mjs", "wasm"):
        shutil.copy(runtime / "dist" / f"ort-wasm-simd-threaded.asyncify.{ending}", folder)


@needs_browser
@needs_transformers_js
@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_the_page_translates_as_our_greedy_search(browser: Browser, tmp_path: Path, quantization: str) -> None:
    model, ours = make_trained("web", quantization, steps=300, **MODERN)
    folder = written(tmp_path, "web", model)
    add_library(folder)
    requested(browser)
    with served(folder) as address:
        is_ready = "return !document.querySelector('button').disabled"
        browser.get(address)
        wait(browser, is_ready)
        browser.execute_script("document.forms[0].text.value = arguments[0]", "\n".join(LINES))
        browser.find_element("css selector", "button").click()
        wait(browser, is_ready)
        shown = browser.execute_script("return document.forms[0].translation.value").split("\n")
        assert requested(browser) == {address.rstrip("/")}
    assert browser.execute_script("return document.querySelector('[role=status]').textContent") == ""
    assert shown == [each.text for each in native("web", ours, model).translate(LINES)]
    assert console_messages(browser) == []
