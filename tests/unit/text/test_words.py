"""Words of several scripts, as people who read them divide lines."""

import unicodedata

import pytest

from nmt.text.words import WORD, words_between_spaces


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("It's 3.5 km, über_all!", ["It", "s", "3", "5", "km", "über_all"]),
        ("वह हिन्दी की किताब है।", ["वह", "हिन्दी", "की", "किताब", "है"]),
        ("السَّلَامُ عَلَيْكُمْ", ["السَّلَامُ", "عَلَيْكُمْ"]),
        ("cafe\u0301, cafés", ["cafe\u0301", "cafés"]),
        ("我们喜欢 NLP。", ["我", "们", "喜", "欢", "NLP"]),
        ("ロボットが「東京」にいる。", ["ロボット", "が", "東", "京", "に", "い", "る"]),
        ("ที่นี่ ๒๕", ["ที่", "นี่", "๒", "๕"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("𑄌𑄋𑄴𑄟𑄳𑄦", ["𑄌𑄋𑄴𑄟𑄳𑄦"]),  # Chakma, beyond the basic plane
        ("?! … — ·", []),
        ("", []),
    ],
)
def test_words_of_several_scripts(line: str, words: list[str]) -> None:
    assert WORD.findall(line) == words


def test_each_letter_digit_and_mark_is_in_a_word_and_nothing_else_is() -> None:
    characters = [chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    in_words = {each for each in characters if WORD.fullmatch(each)}
    expected = {each for each in characters if each.isalnum() or each == "_" or unicodedata.category(each)[0] == "M"}
    assert in_words == expected


@pytest.mark.parametrize(
    "line", ["", " ", "It's  3.5\tkm, \u00a0 über_all! ", "वह है।", "한국어 문장", "a\x1cb\x85c\u3000d"]
)
def test_words_between_spaces_are_those_of_python(line: str) -> None:
    assert words_between_spaces(line) == line.split()


def test_each_character_of_a_script_without_spaces_is_a_word() -> None:
    assert words_between_spaces("我喜欢 NLP。ที่นี่") == ["我", "喜", "欢", "NLP。", "ที่", "นี่"]
