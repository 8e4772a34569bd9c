"""A real browser for the tests of pages: Chromium without a window."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
DRIVER = shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (BROWSER and DRIVER and find_spec("selenium")),
    reason="needs a browser",
)

FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--window-size=1200,900"),
)
SECONDS = 90
"""Most to wait for the page; it takes a second or two on a machine with nothing else to do."""

Browser = Any


def start(profile: Path) -> Browser:
    """Start the browser with a new profile. It logs what pages print, and every request."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(SECONDS)
    return driver


def wait(browser: Browser, condition: str, *arguments: object) -> None:
    """Wait until a script returns something true."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, SECONDS, poll_frequency=0.05).until(
        lambda driver: driver.execute_script(condition, *arguments), condition
    )


def press(browser: Browser, *keys: str) -> None:
    """Press keys wherever the focus is."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    actions = ActionChains(browser)
    for key in keys:
        actions.send_keys(getattr(Keys, key) if hasattr(Keys, key) else key)
    actions.perform()


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


@contextmanager
def phone(browser: Browser) -> Iterator[None]:
    """Give the browser the screen of a phone, 390 pixels wide."""
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def console_messages(browser: Browser) -> list[str]:
    """Return what the page has printed since the last call."""
    return [entry["message"] for entry in browser.get_log("browser")]
