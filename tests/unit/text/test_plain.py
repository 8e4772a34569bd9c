"""Letters of several scripts, as Unicode has them."""

import unicodedata

from nmt.text.plain import plain, sentence_digest


def test_letters_and_marks_without_case_are_kept_and_all_else_is_a_space() -> None:
    text = "".join(chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000)
    letters = [each for each in text.casefold() if unicodedata.category(each)[0] in "LM"]
    assert plain(text).replace(" ", "") == "".join(letters)
    assert plain("It's 3.5 KM,\tall!") == "it s     km  all "
    assert sentence_digest(" 1. ") == sentence_digest("1.") != sentence_digest("2.")
