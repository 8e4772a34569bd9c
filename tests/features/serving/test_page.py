"""The files of the page: what is served, and under which policy."""

import re

import pytest

from nmt.serving.page import HEADERS, load_page

PAGE = load_page()
TEXTS = {path: file.content.decode() for path, file in PAGE.items()}


def test_every_file_that_the_page_names_is_served() -> None:
    named = re.findall(r'(?:src|href)="([^"]+)"', TEXTS["/"])
    imported = [name for text in TEXTS.values() for name in re.findall(r'from "\./([^"]+)"', text)]
    assert {f"/{name}" for name in (*named, *imported)} | {"/"} == set(PAGE)


def test_page_needs_no_inline_script_or_style() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"<style|<script>|\son\w+=|\sstyle=", TEXTS["/"])


@pytest.mark.parametrize("forbidden", ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("])
def test_scripts_never_make_markup_of_text(forbidden: str) -> None:
    assert not [path for path, text in TEXTS.items() if forbidden in text]


def test_media_types_are_those_of_the_files() -> None:
    assert PAGE["/"].media_type == "text/html; charset=utf-8"
    assert PAGE["/page.js"].media_type == "text/javascript; charset=utf-8"
