"""Terms are found in lines as whole words."""

from pathlib import Path
from random import Random

import pytest

from nmt.errors import UserError
from nmt.text.glossary import WORD_OR_CHARACTER, Glossary

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


def same_word(term: str, word: str) -> bool:
    return term == word or (term.islower() and term == word.lower())


def longest_terms(terms: dict[str, str], line: str) -> tuple[str, ...]:
    """Find terms plainly: at each word, try all terms, the longest first."""
    words, found, place = WORD_OR_CHARACTER.findall(line), [], 0
    by_length = sorted(
        ((WORD_OR_CHARACTER.findall(source), target) for source, target in terms.items()),
        key=lambda each: -len(each[0]),
    )
    while place < len(words):
        for term, target in by_length:
            here = words[place : place + len(term)]
            if len(here) == len(term) and all(map(same_word, term, here)):
                found.append(target)
                place += len(term) - 1
                break
        place += 1
    return tuple(dict.fromkeys(found))


def test_terms_with_some_words_in_lower_case_and_others_as_written_are_found_in_any_order() -> None:
    random = Random(5)
    for _ in range(300):
        sources = {" ".join(random.choices(["a", "A", "B", "#"], k=random.randint(1, 4))) for _ in range(8)}
        by_case: dict[str, str] = {source.lower(): source for source in sorted(sources)}  # one of those that compete
        terms = {source: f"{number}" for number, source in enumerate(by_case.values())}
        found = Glossary(terms)
        for _ in range(3):  # what was computed for one line serves the next
            line = " ".join(random.choices(["a", "A", "b", "B", "#", "c"], k=30))
            assert found.find(line) == longest_terms(terms, line)


@pytest.mark.parametrize(
    ("term", "line", "is_found"),
    [
        ("कम", "यह कमी है", False),
        ("कमी", "यह कमी है", True),
        ("cafe", "un cafe\u0301", False),
        ("cafe\u0301", "un cafe\u0301!", True),
        ("IBM cloud", "the IBM Cloud", True),
        ("IBM cloud", "the ibm cloud", False),
    ],
)
def test_marks_belong_to_words_and_each_word_has_its_case(term: str, line: str, is_found: bool) -> None:
    assert bool(Glossary({term: "x"}).find(line)) is is_found
