"""The page in a real browser: it draws, it answers to the pointer and to the search, and it complains of nothing."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmt.config.keys import with_values
from nmt.config.schema import Config
from nmt.features.report import command as report
from tests.browser import Browser, console_messages, needs_browser, phone, point_at, press, wait

pytestmark = needs_browser


@pytest.fixture(scope="module")
def pages(first: Config) -> dict[str, Path]:
    """A run's page and a comparison's, with the charts' library in them."""
    report.run(replace(first, checkpoint="last"))
    report.run(with_values(first, {"compare": ["first", "second"]}))
    return {"run": first.run_folder / "report.html", "comparison": first.run_folder / "compared-second.html"}


def open_page(browser: Browser, page: Path, charts: int) -> None:
    """Load a page and wait until its charts are drawn."""
    browser.get(page.as_uri())
    wait(browser, f"return document.querySelectorAll('[data-chart] svg').length === {charts}")


def test_a_run_page_draws_charts_and_searches_sentences(browser: Browser, pages: dict[str, Path]) -> None:
    assert pages["run"].stat().st_size < 5_000_000
    open_page(browser, pages["run"], charts=10)
    empty = (
        "return [...document.querySelectorAll('[data-chart] svg')].filter(svg => !svg.querySelector('path[d]')).length"
    )
    assert browser.execute_script(empty) == 0
    wait(browser, "return document.querySelectorAll('#look-picture svg path[d]').length > 20")

    point_at(browser, "[data-chart='0'] svg", across=0.9, down=0.7)
    wait(browser, "return document.querySelector('#vg-tooltip-element.visible td.value')")
    tooltip = browser.execute_script("return document.querySelector('#vg-tooltip-element').textContent")
    assert "step" in tooltip
    assert "loss" in tooltip

    shown = "return [...document.querySelectorAll('.sentences .list li')].map(each => each.textContent)"
    assert len(browser.execute_script(shown)) == 10
    browser.find_element("css selector", ".sentences input").send_keys("KING")
    found = browser.execute_script(shown)
    assert found
    assert all("king" in text or "koenig" in text for text in found)
    assert browser.execute_script("return document.querySelector('.list mark').textContent.toLowerCase()") == "king"
    assert console_messages(browser) == []


def test_attention_follows_the_pointer_the_head_buttons_and_keys(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["run"], charts=10)
    weights = (
        "return [...document.querySelectorAll('#look-keys span')]"
        ".map(span => Number(span.style.getPropertyValue('--weight')))"
    )
    point_at(browser, "#look-queries span:nth-child(4)")
    wait(browser, "return document.querySelector('#look-queries span:nth-child(4)').classList.contains('looking')")
    assert sum(browser.execute_script(weights)) == pytest.approx(1, abs=0.05)
    where = "return document.getElementById('look-where').textContent"
    assert browser.execute_script(where) == "layer 1/2, head 1/2"
    for expected in ("layer 1/2, head 2/2", "layer 2/2, head 1/2"):
        browser.execute_script("document.getElementById('look-on').click()")
        assert browser.execute_script(where) == expected
    browser.execute_script("document.querySelector('[data-part=decoder]').click()")
    browser.execute_script("document.querySelector('#look-queries span:nth-child(3)').focus()")
    wait(browser, "return document.querySelector('#look-queries span:nth-child(3)').classList.contains('looking')")
    before = browser.execute_script(weights)
    press(browser, "ARROW_RIGHT")
    wait(browser, "return document.getElementById('look-where').textContent === 'layer 2/2, head 2/2'")
    wait(browser, "return document.querySelector('#look-queries span:nth-child(3)').classList.contains('looking')")
    assert browser.execute_script(weights) != before
    point_at(browser, "#look-queries span:nth-child(1)")
    wait(browser, "return document.querySelector('#look-queries span:nth-child(1)').classList.contains('looking')")
    assert browser.execute_script(weights)[:2] == [1, 0]  # the first piece attends only to itself
    assert console_messages(browser) == []


def test_the_theme_changes_colours_and_a_phone_needs_no_scrolling_sideways(
    browser: Browser, pages: dict[str, Path]
) -> None:
    open_page(browser, pages["run"], charts=10)
    ink = "return getComputedStyle(document.querySelector('[data-chart] svg text')).fill"
    before = browser.execute_script(ink)
    browser.execute_script("document.getElementById('theme').click()")
    assert browser.execute_script(ink) != before
    with phone(browser):
        open_page(browser, pages["run"], charts=10)
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    assert console_messages(browser) == []


def test_a_comparison_page_marks_differences_in_every_order(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["comparison"], charts=6)
    first = "return document.querySelector('.list li').textContent"
    assert "first" in browser.execute_script(first)
    browser.execute_script("document.querySelector('[data-order=best]').click()")
    assert browser.execute_script("return document.querySelectorAll('.list li del, .list li ins').length") > 0
    assert console_messages(browser) == []
