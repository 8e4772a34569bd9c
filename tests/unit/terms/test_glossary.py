"""Terms are found in lines as whole words."""

from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.terms.glossary import Glossary

TERMS = {"machine": "Maschine", "machine learning": "maschinelles Lernen", "US": "USA", "don't": "nicht", "C++": "C++"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a machine", ("Maschine",)),
        ("Machine learning with a machine, a Machine", ("maschinelles Lernen", "Maschine")),
        ("machine  learning.", ("maschinelles Lernen",)),
        ("machines tell us", ()),
        ("the US", ("USA",)),
        ("Don't!", ("nicht",)),
        ("in C++, not C", ("C++",)),
        ("the machine", ("Maschine",)),
        ("machine learn", ("Maschine",)),
        ("", ()),
    ],
)
def test_terms_are_found_as_whole_words_and_the_longest_first(line: str, expected: tuple[str, ...]) -> None:
    assert Glossary(TERMS).find(line) == expected


def test_a_file_has_a_term_and_its_translation_on_each_line(tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    file.write_text("dog\tHund\n\n small cat \t kleine Katze\ndog\tHund\n", encoding="utf-8")
    assert Glossary.read(str(file)).find("small cat, dog") == ("kleine Katze", "Hund")
    assert Glossary.read("").find("dog") == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("dog\tHund\ncat", "terms.tsv, line 2: not a term, a tab and its translation"),
        ("dog\tHund\tHunde", "line 1: not a term"),
        ("\tHund", "line 1: not a term"),
        ("dog\t ", "line 1: not a term"),
        ("dog\tHund\ndog\tHunde", "line 2: 'dog' has another translation above"),
    ],
)
def test_lines_that_are_no_terms_are_named(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "terms.tsv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        Glossary.read(str(file))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(UserError, match=r"decoding\.terms=nowhere does not exist"):
        Glossary.read("nowhere")
