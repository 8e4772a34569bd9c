"""Terms are found in lines as whole words."""

from pathlib import Path
from random import Random

import pytest

from nmt.errors import UserError
from nmt.text.glossary import Glossary, words_of

TERMS = {"machine": "Maschine", "machine learning": "maschinelles Lernen", "US": "USA", "C++": "C++", "कम": "wenig"}
TERMS |= {"cafe\u0301": "Café", "IBM cloud": "Wolke", "東京": "Tokio"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Machine  learning with a machine, a Machine", ("maschinelles Lernen", "Maschine")),
        ("machines tell us of C++!", ("C++",)),
        ("यह कमी है, un cafe, the ibm cloud", ()),
        ("un cafe\u0301! the IBM Cloud in the US", ("Café", "Wolke", "USA")),
        ("私は東京にいる。", ("Tokio",)),
        ("", ()),
    ],
)
def test_terms_are_found_as_whole_words_and_the_longest_first(line: str, expected: tuple[str, ...]) -> None:
    assert Glossary(TERMS).find(line) == expected


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("It's 3.5, über_all!", ["It", "'", "s", "3", ".", "5", ",", "über_all", "!"]),
        ("वह हिन्दी", ["वह", "हिन्दी"]),
        ("السَّلَامُ عَلَيْكُمْ", ["السَّلَامُ", "عَلَيْكُمْ"]),
        ("我们 NLP", ["我", "们", "NLP"]),
        ("ロボットが", ["ロボット", "が"]),
        ("ที่นี่ ๒๕", ["ที่", "นี่", "๒", "๕"]),
    ],
)
def test_words_of_several_scripts(line: str, words: list[str]) -> None:
    assert words_of(line) == words


def test_a_file_has_a_term_and_its_translation_on_each_line(tmp_path: Path) -> None:
    file = tmp_path / "terms.tsv"
    file.write_text("dog\tHund\n\n small cat \t kleine Katze\ndog\tHund\n", encoding="utf-8")
    assert Glossary.read(str(file)).find("small cat, dog") == ("kleine Katze", "Hund")
    assert Glossary.read("").find("dog") == ()
    for wrong in ("dog\tHund\ncat", "cat\tKatze\ndog\tHund\tHunde", "a\tb\n\tHund", "a\tb\na\tc"):
        file.write_text(wrong, encoding="utf-8")
        with pytest.raises(UserError, match=r"terms.tsv, line 2: (not a term, a tab|.*another translation above)"):
            Glossary.read(str(file))
    with pytest.raises(UserError, match=r"decoding\.terms=nowhere does not exist"):
        Glossary.read("nowhere")


def longest_terms(terms: dict[str, str], line: str) -> tuple[str, ...]:
    """Find terms plainly: at each word, try all terms, the longest first."""

    def same(term: str, word: str) -> bool:
        return term == word or (term.islower() and term == word.lower())

    words, found, place = line.split(), dict[str, None](), 0
    by_length = sorted(((source.split(), target) for source, target in terms.items()), key=lambda each: -len(each[0]))
    while place < len(words):
        fitting = (
            each for each in by_length if len(words) - place >= len(each[0]) and all(map(same, each[0], words[place:]))
        )
        term, target = next(fitting, (["one word"], ""))
        found |= {target: None} if target else {}
        place += len(term)
    return tuple(found)


def test_terms_with_some_words_in_lower_case_and_others_as_written_are_found_in_any_order() -> None:
    random = Random(5)
    for _ in range(300):
        sources = {" ".join(random.choices(["a", "A", "B", "#"], k=random.randint(1, 4))) for _ in range(8)}
        by_case: dict[str, str] = {source.lower(): source for source in sorted(sources)}  # one of those that compete
        terms = {source: f"{number}" for number, source in enumerate(by_case.values())}
        line = " ".join(random.choices(["a", "A", "b", "B", "#", "c"], k=60))
        assert Glossary(terms).find(line) == longest_terms(terms, line)
