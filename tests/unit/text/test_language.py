"""Codes and names of languages."""

import pytest

from nmt.text.language import language_name


@pytest.mark.parametrize(
    ("code", "name"), [("de", "German"), ("de-AT", "German"), ("PT_br", "Portuguese"), ("sk", "Slovak"), ("tlh", "tlh")]
)
def test_a_language_has_its_english_name_or_its_code(code: str, name: str) -> None:
    assert language_name(code) == name
