"""The web export in a real browser: the first visit loads it, and after that it needs no server."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from nmt.decoding.torch_engine import TorchEngine
from nmt.features.exports.web.engine import WebEngine
from nmt.features.exports.web.exporter import MODEL
from tests.browser import (
    Browser,
    console_messages,
    needs_browser,
    point_at_second_word,
    replace_second_word,
    wait,
)
from tests.features.exports.test_onnx import make_plain_tokenizer
from tests.features.exports.test_web import POSITIONS, sentences_of_words
from tests.features.exports.web_folder import DECODING, needs_runtime, write_export
from tests.unit.small_models import make_model, teach

pytestmark = [pytest.mark.slow, needs_browser, needs_runtime]

SENTENCES = 200
IS_READY = "return document.documentElement.dataset.offline === 'ready'"
IS_DONE = (
    "return document.querySelectorAll('#sentences > li').length === arguments[0] "
    "&& !document.querySelector('#sentences').hasAttribute('aria-busy')"
)
SHOWN = "return [...document.querySelectorAll('.words')].map(each => each.textContent)"
TYPE = (
    "const field = document.querySelector('#text'); field.value = arguments[0];"
    "field.dispatchEvent(new Event('input', { bubbles: true }))"
)


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
    """Return the origins that the browser has asked since the last call, but for its own pages."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"]
    return {"/".join(url.split("/")[:3]) for url in urls if url.startswith("http")}


@pytest.fixture
def _clean_browser(browser: Browser) -> None:
    browser.get("about:blank")
    console_messages(browser)
    requested(browser)


@pytest.mark.usefixtures("_clean_browser")
@pytest.mark.timeout(900)
def test_the_page_translates_offline_as_onnxruntime_in_python(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="needs the extra onnx")
    tokenizer = make_plain_tokenizer()
    model = make_model(tokenizer, norm_placement="pre", positions="rotary")
    folder, lines = write_export(tmp_path, tokenizer, model), sentences_of_words(SENTENCES)
    engine = WebEngine(folder / MODEL, tokenizer, DECODING, POSITIONS, "")
    expected = [next(engine.translate([line])).text for line in lines]
    with served(folder) as address:
        browser.get(address)
        wait(browser, IS_READY)
        assert requested(browser) == {address.rstrip("/")}
    browser.get("about:blank")
    browser.get(address)  # the server has ended
    wait(browser, IS_READY)
    began = time.perf_counter()
    browser.execute_script(TYPE, "\n".join(lines))
    wait(browser, IS_DONE, SENTENCES)
    seconds = time.perf_counter() - began
    shown = browser.execute_script(SHOWN)
    ours = TorchEngine([model], tokenizer, DECODING, torch.device("cpu"))
    began = time.perf_counter()
    for line in lines:
        list(ours.translate([line]))
    with capsys.disabled():
        print(f"\nin the browser {SENTENCES / seconds:.0f} sentences per second with details, "
              f"nmt {SENTENCES / (time.perf_counter() - began):.0f}")  # fmt: skip
    assert shown == expected
    assert [message for message in console_messages(browser) if "ERR_CONNECTION_REFUSED" not in message] == []


@pytest.mark.usefixtures("_clean_browser")
def test_words_can_be_pointed_at_and_replaced(browser: Browser, tmp_path: Path) -> None:
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="needs the extra onnx")
    tokenizer = make_plain_tokenizer()
    model = teach(make_model(tokenizer, norm_placement="pre"), tokenizer, 300)
    folder = write_export(tmp_path, tokenizer, model, "int8")
    with served(folder) as address:
        browser.get(address)
        wait(browser, IS_READY)
        browser.execute_script(TYPE, "the small cat sees a dog")
        point_at_second_word(browser)
        assert browser.execute_script("return document.querySelector('#source-name').textContent") == "English"
        expected, shown = replace_second_word(browser)
        assert shown == expected
        assert console_messages(browser) == []


@pytest.mark.usefixtures("_clean_browser")
def test_a_damaged_file_is_refused_with_one_line(browser: Browser, tmp_path: Path) -> None:
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason="needs the extra onnx")
    tokenizer = make_plain_tokenizer()
    folder = write_export(tmp_path, tokenizer, make_model(tokenizer))
    graph = folder / MODEL / "encoder_model.onnx"
    graph.write_bytes(graph.read_bytes()[:-1] + b"x")
    with served(folder) as address:
        browser.get(address)
        wait(browser, "return !document.querySelector('#problem').hidden")
        said = browser.execute_script("return document.querySelector('#problem-text').textContent")
    assert said == (
        "The translator failed: model/encoder_model.onnx is damaged or from another version: load the page again."
    )
