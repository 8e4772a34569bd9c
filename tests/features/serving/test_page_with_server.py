"""The page in a real browser with the real server, which runs a small random model."""

import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.browser import Browser, console_messages, needs_browser, wait
from tests.integration.test_server import Server, start
from tests.unit.small_models import LINES
from tests.unit.tiny_run import write_tiny_run

pytestmark = needs_browser

WORDS = "[...document.querySelectorAll('li:first-child [data-word]')]"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = start(write_tiny_run(tmp_path / "outputs" / "tiny"))
    yield started
    started.process.send_signal(signal.SIGTERM)
    assert started.process.wait(30) == 0


def test_the_real_server_answers_everything_that_the_page_asks(browser: Browser, server: Server) -> None:
    browser.get("about:blank")
    console_messages(browser)
    browser.get(f"{server.url}/#{urlencode({'text': LINES[0]})}")
    wait(browser, f"return {WORDS}.length > 1")
    assert browser.execute_script("return document.querySelector('#source-name').textContent") != "Source"
    browser.execute_script(f"{WORDS}[1].focus()")
    wait(browser, "return document.querySelector('#look').textContent.includes('attends to')")
    weights = (
        "[...document.querySelectorAll('#mirror span')].map(each => Number(each.style.getPropertyValue('--weight')))"
    )
    assert sum(browser.execute_script(f"return {weights}")) == pytest.approx(1, abs=0.02)

    browser.execute_script(f"{WORDS}[1].click()")
    wait(browser, "return document.querySelectorAll('#choices:popover-open button').length > 1")
    chosen = browser.execute_script("return document.querySelector('#choices button:last-child').dataset.choice")
    before = browser.execute_script(f"return {WORDS}[0].textContent")
    browser.find_element("css selector", "#choices button:last-child").click()
    wait(browser, "return document.querySelector('.restore')")
    assert browser.execute_script(f"return {WORDS}.slice(0, 2).map(each => each.textContent)") == [before, chosen]
    assert console_messages(browser) == []
