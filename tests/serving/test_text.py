"""Texts are split into sentences, and put together again with everything between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.serving.text import MAX_CHARACTERS, MAX_LETTERS, html_sentences, join, sentences, texts_between_tags


def split(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" \n\t ", []),
        ("A dog. A cat! Really?  Yes…", ["A dog.", "A cat!", "Really?", "Yes…"]),
        ("no punctuation here", ["no punctuation here"]),
        ("one line\nanother one\r\n\r\nthe last", ["one line", "another one", "the last"]),
        ('He said: "Stop." She did (at once.) Then', ['He said: "Stop."', "She did (at once.)", "Then"]),
        ("Dr. Who met J. Smith in the U.S. Army. He left.", ["Dr. Who met J. Smith in the U.S. Army.", "He left."]),
        ("Am 3. Mai, z.B. Montag, usw. ging es. 1990. Da", ["Am 3. Mai, z.B. Montag, usw. ging es.", "1990.", "Da"]),
        ("The exponent is n². The result is 5². It is 3.", ["The exponent is n².", "The result is 5².", "It is 3."]),
        ("it costs 3.50 dollars. approx. that", ["it costs 3.50 dollars. approx. that"]),
        ("今日は晴れ。明日は「雨。」でしょう", ["今日は晴れ。", "明日は「雨。」", "でしょう"]),
        ("“Go!” “Now?” ¿Qué? ¡Sí!", ["“Go!”", "“Now?”", "¿Qué?", "¡Sí!"]),
    ],
)  # fmt: skip
def test_text_is_split_into_sentences(text: str, expected: list[str]) -> None:
    assert split(text) == expected


def test_long_text_without_punctuation_is_cut_between_words() -> None:
    found = split("word " * 1000)
    assert max(map(len, found)) <= MAX_CHARACTERS
    assert " ".join(found).split() == ["word"] * 1000
    assert [len(each) for each in split("x" * (MAX_CHARACTERS + 1))] == [MAX_LETTERS, MAX_CHARACTERS + 1 - MAX_LETTERS]


@given(st.text(alphabet="aA1.!? \n\r\t\"'()。」\u2028é😀\x85", max_size=200))
def test_a_text_of_untranslated_sentences_is_the_text_itself(text: str) -> None:
    assert join(text, list(sentences(text)), split(text)) == text
    assert sorted("".join("".join(split(text)).split())) == sorted("".join(text.split()))  # no character is lost
    assert all(each == each.strip() and len(each.splitlines()) == 1 for each in split(text))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>One <b>two</b>.</p>", ["One ", "two", "."]),
        ("no tags & no end", ["no tags & no end"]),
        ("a<!-- b < c -->d", ["a", "d"]),
        ("<script>if (a < b) c()</script>after<style>p > q {}</style>", ["after"]),
        ("<pre>x <b>y</b></pre><code>z", []),
        ("1 < 2", ["1 < 2"]),
        ("<scripted>text</scripted>", ["text"]),
        ("<p class='a' title='a > \"b\"'>x", ["x"]),
        ("<p don't>it's</p>", ["it's"]),
    ],
)
def test_only_text_between_tags_is_found(html: str, expected: list[str]) -> None:
    assert [html[start:end] for start, end in texts_between_tags(html) if start < end] == expected


@pytest.mark.parametrize(
    "unit", ["<", "<!--", "</script", ".", '."', "。", "a.", " .", "<a ", '<a ="', "<p> ", "&lt", "\r", "x"]
)
def test_work_grows_in_proportion_to_the_text(unit: str) -> None:
    """A pattern that backtracks would take hours for this text, and the test's time limit would end it."""
    text = unit * (200_000 // len(unit))
    assert sum(1 for _ in sentences(text)) <= len(text)
    assert sum(1 for _ in html_sentences(text)) <= len(text)
