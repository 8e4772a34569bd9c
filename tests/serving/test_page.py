"""The files of the page: what is served, and under which policy."""

import re

from nmt.serving.page import load_page

PAGE = load_page()
TEXTS = {path: file.content.decode() for path, file in PAGE.items()}


def test_every_file_that_the_page_names_is_served() -> None:
    named = re.findall(r'(?:src|href)="([^"]+)"', TEXTS["/"])
    imported = [name for text in TEXTS.values() for name in re.findall(r'from "\./([^"]+)"', text)]
    assert {f"/{name}" for name in (*named, *imported)} | {"/"} == set(PAGE)


def test_media_types_are_those_of_the_files() -> None:
    assert PAGE["/"].media_type == "text/html; charset=utf-8"
    assert PAGE["/page.js"].media_type == "text/javascript; charset=utf-8"
