"""The page in a real browser: it draws, and it complains of nothing."""

from dataclasses import replace

import pytest

from nmt.config.tree import Config
from nmt.report import command as report
from tests.browser import Browser, console_messages, needs_browser, phone

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page(first: Config) -> str:
    """Write the page of a run and return its address."""
    report.run(replace(first, checkpoint="last"))
    return (first.run_folder / "report.html").as_uri()


def test_the_attention_of_each_head_is_drawn(browser: Browser, page: str) -> None:
    browser.get(page)
    weights = (
        "return [...document.querySelectorAll('#attention tr:nth-child(3) td')]"
        ".map(cell => Number(cell.style.getPropertyValue('--weight')))"
    )
    cross = browser.execute_script(weights)
    assert sum(cross) == pytest.approx(1, abs=0.05)
    choose = "const list = document.getElementById('{}'); list.value = '{}'; list.dispatchEvent(new Event('change'))"
    browser.execute_script(choose.format("head", 3))
    assert browser.execute_script(weights) != cross
    browser.execute_script(choose.format("kind", "decoder"))
    assert not any(browser.execute_script(weights)[2:])  # the second piece sees no later one
    assert browser.execute_script("return document.getElementById('head').selectedOptions[0].text") == "layer 2, head 2"
    assert console_messages(browser) == []


def test_a_phone_needs_no_scrolling_sideways(browser: Browser, page: str) -> None:
    with phone(browser):
        browser.get(page)
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    assert console_messages(browser) == []
