"""The page in a real browser with the real server, which runs a small random model."""

import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.browser import Browser, console_messages, needs_browser, point_at_second_word, replace_second_word
from tests.integration.test_server import Server, start
from tests.unit.small_models import LINES
from tests.unit.tiny_run import write_tiny_run

pytestmark = [needs_browser, pytest.mark.slow]


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
    point_at_second_word(browser)
    assert browser.execute_script("return document.querySelector('#source-name').textContent") != "Source"
    weights = (
        "[...document.querySelectorAll('#mirror span')].map(each => Number(each.style.getPropertyValue('--weight')))"
    )
    assert sum(browser.execute_script(f"return {weights}")) == pytest.approx(1, abs=0.02)

    expected, shown = replace_second_word(browser)
    assert shown == expected
    assert console_messages(browser) == []
