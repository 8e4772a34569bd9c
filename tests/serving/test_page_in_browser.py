"""The page in a real browser, with a server that can be slow, busy or broken."""

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")
from starlette.exceptions import HTTPException

from tests.browser import Browser, console_messages, needs_browser, point_at, press, wait
from tests.serving.conftest import ThreadModel
from tests.serving.stand_in import StandIn, serving
from tests.unit.small_models import LINES

pytestmark = needs_browser

TEXT = "The little dog sees the house.\n\nThe man walks his dog."
FIRST = "der kleine Hund sieht der Haus."
SHOWN = "return [...document.querySelectorAll('.words')].map(each => each.textContent)"
WORD = "document.querySelectorAll('[data-word]')"
MARKED = (
    "return [...document.querySelectorAll('#mirror span')]"
    ".filter(each => Number(each.style.getPropertyValue('--weight')) > 0.5).map(each => each.textContent)"
)


@pytest.fixture
def stand_in() -> StandIn:
    return StandIn("base")


@pytest.fixture
def url(stand_in: StandIn) -> Iterator[str]:
    with serving(stand_in, StandIn("int8")) as found:
        yield found


@pytest.fixture(autouse=True)
def _quiet_console(browser: Browser) -> Iterator[None]:
    browser.get("about:blank")
    browser.get_log("browser")
    yield
    unexpected = [message for message in console_messages(browser) if "Failed to load resource" not in message]
    assert unexpected == []


def open_page(browser: Browser, url: str, expected: int = 1, **shown: str) -> None:
    """Open the page at an address, and wait for this number of sentences."""
    browser.get("about:blank")
    browser.get(f"{url}#{urlencode(shown)}" if shown else url)
    wait(browser, "return document.querySelectorAll('#model option').length > 0")
    if shown.get("text"):
        wait(browser, f"return document.querySelectorAll('#sentences > li').length === {expected}")


def value(browser: Browser, script: str) -> Any:
    return browser.execute_script(f"return {script}")


def click(browser: Browser, selector: str) -> None:
    browser.find_element("css selector", selector).click()


def test_typing_translates_once_it_pauses_and_drops_stale_answers(
    browser: Browser, url: str, stand_in: StandIn
) -> None:
    stand_in.delays["the little"] = 0.5
    open_page(browser, url)
    press(browser, *"the little")
    while not stand_in.translated():
        time.sleep(0.01)
    press(browser, *" dog")
    wait(browser, f"{SHOWN}[0] === 'der kleine Hund'")
    time.sleep(0.6)
    assert browser.execute_script(SHOWN) == ["der kleine Hund"]
    assert [each.text for each in stand_in.translated()] == ["the little", "the little dog"]
    assert value(browser, "document.querySelector('#source-name').textContent") == "English"


def test_alternatives_can_be_chosen_and_taken_back(browser: Browser, url: str) -> None:
    open_page(browser, url, expected=2, text=TEXT)
    assert browser.execute_script(SHOWN)[0] == FIRST
    alternatives = "[...document.querySelectorAll('li:first-child .alternatives button')].map(each => each.textContent)"
    assert value(browser, alternatives) == ["der kleine Hund sieht der anders.", f"Doch {FIRST}"]
    assert value(browser, "document.querySelector('.alternatives .differs').textContent") == "anders."
    click(browser, ".alternatives li:last-child button")
    assert browser.execute_script(SHOWN)[0] == f"Doch {FIRST}"
    assert len(value(browser, alternatives)) == 2
    click(browser, ".restore")
    assert browser.execute_script(SHOWN)[0] == FIRST
    assert not value(browser, "document.querySelector('.restore')")


def test_what_a_word_attends_to_is_drawn_on_the_text(browser: Browser, url: str) -> None:
    open_page(browser, url, expected=2, text="\U0001f600 The little dog.\nThe man walks.")
    point_at(browser, "li:last-child [data-word='1']")
    wait(browser, f"{MARKED}.join() === 'man'")
    assert value(browser, "document.querySelector('#look').textContent") == "Mann: 55 % certain · attends to man 80 %"
    browser.execute_script(f"{WORD}[3].focus()")
    wait(browser, f"{MARKED}.join() === 'dog.'")
    where = "return [...document.querySelectorAll('#mirror span')].map(each => each.textContent)"
    assert browser.execute_script(where) == ["\U0001f600", "The", "little", "dog."]
    browser.execute_script("document.querySelector('#text').focus()")
    wait(browser, f"{MARKED}.length === 0")


def test_everything_can_be_done_with_the_keyboard(browser: Browser, url: str, stand_in: StandIn) -> None:
    open_page(browser, url)
    press(browser, *"the little dog")
    wait(browser, f"{SHOWN}[0] === 'der kleine Hund'")
    press(browser, "TAB", "TAB", "ARROW_RIGHT")
    wait(browser, f"return document.activeElement === {WORD}[1]")
    press(browser, "ENTER")
    wait(browser, "return document.activeElement.getAttribute('role') === 'menuitemradio'")
    assert value(browser, "document.activeElement.getAttribute('aria-checked')") == "true"
    press(browser, "ESCAPE")
    wait(browser, f"return document.activeElement === {WORD}[1]")
    press(browser, "ENTER")
    wait(browser, "return document.activeElement.getAttribute('role') === 'menuitemradio'")
    press(browser, "ARROW_DOWN", "ARROW_DOWN", "ENTER")
    wait(browser, f"{SHOWN}[0] === 'der junge Hund'")
    assert value(browser, "document.activeElement.textContent") == "junge"
    assert "der" in [each.beginning for task, each in stand_in.asked if task.choices]
    assert stand_in.translated()[-1].beginning == "der junge"
    press(browser, "TAB")
    assert value(browser, "document.activeElement.dataset.candidate") == "1"


def test_everything_that_a_model_knows_of_its_words_is_shown(browser: Browser, running: ThreadModel) -> None:
    with serving(running) as url:
        open_page(browser, url, text=LINES[0])
        browser.execute_script(f"{WORD}[1].focus(); {WORD}[1].click()")
        wait(browser, "return document.querySelectorAll('#choices:popover-open button').length > 1")
        assert "attends to" in value(browser, "document.querySelector('#look').textContent")
        weights = "[...document.querySelectorAll('#mirror span')].map(each => +each.style.getPropertyValue('--weight'))"
        assert sum(value(browser, weights)) == pytest.approx(1, abs=0.02)


def test_models_without_attention_or_choices_show_what_they_have(browser: Browser, url: str) -> None:
    open_page(browser, url, text="The dog.", model="int8")
    browser.execute_script(f"{WORD}[1].focus(); {WORD}[1].click()")
    assert value(browser, "document.querySelector('#look').textContent") == "Hund.: 21 % certain"
    assert value(browser, "document.querySelectorAll('[aria-haspopup]').length") == 0


def test_the_address_has_the_text_and_the_model_and_opens_with_unknown_ones(browser: Browser, url: str) -> None:
    open_page(browser, url)
    press(browser, *"the little dog & cat #1?")
    wait(browser, f"{SHOWN}.length === 1")
    address, before = browser.current_url, browser.execute_script(SHOWN)
    browser.get("about:blank")
    browser.get(address)
    wait(browser, f"{SHOWN}.length === 1")
    assert browser.execute_script(SHOWN) == before
    open_page(browser, url, text="The dog.", model="gone")
    assert value(browser, "document.querySelector('#model').value") == "base"
    assert browser.execute_script(SHOWN) == ["der Hund."]


def test_a_busy_server_is_asked_again_when_it_says_so(browser: Browser, url: str, stand_in: StandIn) -> None:
    stand_in.failures.append(HTTPException(429, "The server is busy."))
    open_page(browser, url, text="The dog.")
    assert len(stand_in.translated()) == 2
    assert value(browser, "document.querySelector('#problem').hidden")


def test_an_error_is_one_line_with_a_way_to_try_again(browser: Browser, url: str, stand_in: StandIn) -> None:
    stand_in.failures.append(HTTPException(500, "<b>broken</b>"))
    open_page(browser, url, text="The dog.", expected=0)
    wait(browser, "return !document.querySelector('#problem').hidden")
    assert "<b>broken</b>" in value(browser, "document.querySelector('#problem').textContent")
    click(browser, "#again")
    wait(browser, f"{SHOWN}[0] === 'der Hund.'")
    assert value(browser, "document.querySelector('#problem').hidden")


def test_a_key_is_asked_for_and_sent(browser: Browser) -> None:
    with serving(StandIn("base"), keys=[b"secret-key"]) as url:
        open_page(browser, url, text="The dog.", expected=0)
        wait(browser, "return document.activeElement.id === 'key'")
        press(browser, *"secret-key", "ENTER")
        wait(browser, f"{SHOWN}[0] === 'der Hund.'")
    assert "secret" not in browser.current_url


def test_markup_in_a_text_is_text(browser: Browser, url: str) -> None:
    open_page(browser, url, text="<img src=x onerror=alert(1)> <b>dog</b>")
    assert "<b>dog" in browser.execute_script(SHOWN)[0]
    assert value(browser, "document.querySelectorAll('main img, main b').length") == 0


def test_nothing_is_asked_of_another_host(browser: Browser, url: str) -> None:
    browser.get_log("performance")
    open_page(browser, url, expected=2, text=TEXT)
    browser.execute_script(f"{WORD}[1].click()")
    wait(browser, "return document.querySelector('#choices:popover-open button')")
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
    assert f"{url}v1/translate" in asked
    assert [url for url in asked if not url.startswith((url, "about:blank"))] == []
