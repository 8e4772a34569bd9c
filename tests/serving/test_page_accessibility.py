"""The page against the rules of WCAG, as axe-core checks them in a browser."""

import json
import os
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.browser import Browser, needs_browser, wait
from tests.serving.stand_in import StandIn

AXE = Path(os.environ.get("NODE_MODULES", "")) / "axe-core" / "axe.min.js"
"""The program of axe-core, which npm installs and which is not part of this project."""
pytestmark = [
    needs_browser,
    pytest.mark.slow,
    pytest.mark.skipif(not AXE.is_file(), reason="needs NODE_MODULES with axe-core"),
]

RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}"
TEXT = "The little dog sees the house.\n\nThe man walks his dog."


@pytest.fixture(scope="module")
def axe() -> str:
    return AXE.read_text(encoding="utf-8")


def violations(browser: Browser, axe: str) -> list[str]:
    """Return each rule that the page breaks, with the elements that break it."""
    browser.execute_script(axe)
    script = (
        f"const done = arguments[0]; axe.run(document, {RULES}).then(found => done(JSON.stringify(found.violations)))"
    )
    found = json.loads(browser.execute_async_script(script))
    return [f"{each['id']}: {[node['html'] for node in each['nodes']]}" for each in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    "shown", [{}, {"model": "base"}, {"model": "base", "second": "big"}, {"model": "int8"}], ids=str
)
def test_the_page_breaks_no_rule(browser: Browser, axe: str, shown: dict[str, str], theme: str) -> None:
    server = StandIn()
    try:
        browser.get("about:blank")
        browser.get(f"{server.url}#{urlencode({'text': TEXT, **shown})}" if shown else server.url)
        browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
        wait(browser, "return document.querySelectorAll('#first option').length > 0")
        if shown:
            wait(browser, "return document.querySelectorAll('#sentences > li').length === 2")
            wait(browser, "return getComputedStyle(document.querySelector('#sentences')).opacity === '1'")
        assert violations(browser, axe) == []
    finally:
        server.shutdown()
        server.server_close()


def test_a_broken_rule_would_be_found(browser: Browser, axe: str) -> None:
    browser.get("data:text/html,<title>x</title><main><img src=x><p style='color:%23ccc'>pale</p></main>")
    assert {"image-alt", "color-contrast"} <= {each.partition(":")[0] for each in violations(browser, axe)}
