"""The page in a real browser: it draws, it answers to the pointer and to the search, and it complains of nothing."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.commands import report
from nmt.config.schema import Config

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium, which `make setup` installs")

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="needs a browser: install chromium and chromium-driver to run it"
)

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1200,900"),
)
SECONDS = 90
"""Most to wait for the page; it takes a second or two on a machine with nothing else to do."""

Browser = Any


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(SECONDS)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(first: Config) -> dict[str, Path]:
    """A run's page and a comparison's, with the charts' library in them."""
    report.run(replace(first, checkpoint="last"))
    report.run(replace(first, compare=["first", "second"]))
    return {"run": first.run_folder / "report.html", "comparison": first.run_folder / "compared-second.html"}


def open_page(browser: Browser, page: Path, charts: int) -> None:
    """Load a page and wait until its charts are drawn."""
    browser.get(page.as_uri())
    wait(browser, f"return document.querySelectorAll('[data-chart] svg').length === {charts}")


def wait(browser: Browser, condition: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, SECONDS).until(lambda driver: driver.execute_script(condition), condition)


def point_at(browser: Browser, selector: str, across: float = 0.5, down: float = 0.5) -> None:
    """Move the pointer to a place in an element, given as a share of its width and height."""
    box = browser.execute_script(
        "const element = document.querySelector(arguments[0]); element.scrollIntoView({block: 'center'});"
        "const box = element.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]",
        selector,
    )
    x, y = box[0] + across * box[2], box[1] + down * box[3]
    for place in ((x - 3, y), (x, y)):
        event = {"type": "mouseMoved", "x": place[0], "y": place[1]}
        browser.execute_cdp_cmd("Input.dispatchMouseEvent", event)


def console_messages(browser: Browser) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser")]


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


def test_attention_follows_the_pointer_and_the_head_buttons(browser: Browser, pages: dict[str, Path]) -> None:
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
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        open_page(browser, pages["run"], charts=10)
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert console_messages(browser) == []


def test_a_comparison_page_marks_differences_in_every_order(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["comparison"], charts=6)
    first = "return document.querySelector('.list li').textContent"
    assert "first" in browser.execute_script(first)
    browser.execute_script("document.querySelector('[data-order=best]').click()")
    assert browser.execute_script("return document.querySelectorAll('.list li del, .list li ins').length") > 0
    assert console_messages(browser) == []
