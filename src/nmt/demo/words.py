"""The words of the demo language, which `words.tsv` lists, and their inflection in German."""

from enum import IntEnum
from functools import cache
from importlib import resources
from typing import NamedTuple


class Case(IntEnum):
    """A German case; also the index into the tables of endings."""

    NOMINATIVE = 0
    ACCUSATIVE = 1
    DATIVE = 2


PLURAL = "plural"
"""What stands for the gender in the plural. In the singular the gender is the article: der, die or das."""
ENDINGS = {
    "der": ("er", "en", "em"),
    "die": ("e", "e", "er"),
    "das": ("es", "es", "em"),
    PLURAL: ("e", "e", "en"),
}
"""Endings of dieser, and of adjectives without a determiner, by gender and case."""
ARTICLES = {
    "der": ("der", "den", "dem"),
    "die": ("die", "die", "der"),
    "das": ("das", "das", "dem"),
    PLURAL: ("die", "die", "den"),
}
CONTRACTIONS = {"in dem": "im", "an dem": "am", "zu dem": "zum", "zu der": "zur", "von dem": "vom"}
REFLEXIVES = {(1, False): "mich", (2, False): "dich", (1, True): "uns"}
"""Reflexive pronouns, by person and whether it is the plural, that are not sich."""
FINITE = {
    "sein": ("bin", "bist", "ist", "sind"),
    "war": ("war", "warst", "war", "waren"),
    "haben": ("habe", "hast", "hat", "haben"),
    "werden": ("werde", "wirst", "wird", "werden"),
    "können": ("kann", "kannst", "kann", "können"),
    "müssen": ("muss", "musst", "muss", "müssen"),
    "sollen": ("soll", "sollst", "soll", "sollen"),
    "dürfen": ("darf", "darfst", "darf", "dürfen"),
}
"""The forms of irregular German verbs in the first, second and third person, and in the plural."""
BE = ("am", "are", "is", "are"), ("was", "were", "was", "were")
"""The same forms of `be`, in the present and in the past."""


class Entry(NamedTuple):
    """A row of the table of words."""

    english: tuple[str, ...]
    german: tuple[str, ...]
    uses: tuple[str, ...]
    """Classes, flags and, of verbs, complements."""


@cache
def words(kind: str) -> tuple[Entry, ...]:
    """Return the words of a kind."""
    table = resources.files("nmt.demo").joinpath("words.tsv").read_text(encoding="utf-8")
    rows = [(*line.split("\t"), "")[:4] for line in table.splitlines() if line.startswith(f"{kind}\t")]
    return tuple(Entry(_forms(english), _forms(german), tuple(uses.split())) for _, english, german, uses in rows)


def _forms(column: str) -> tuple[str, ...]:
    """Return the forms in a column; a tree is one."""
    return (column,) if column.startswith("(") else tuple(column.split())


def determiner_form(word: Entry, gender: str, case: Case) -> str:
    """Return a German determiner with its ending; those like ein (mixed) have none in some places."""
    (stem,) = word.german
    if "invariable" in word.uses or ("mixed" in word.uses and _is_bare(gender, case)):
        return stem
    return ARTICLES[gender][case] if stem == "d" else stem + ENDINGS[gender][case]


def _is_bare(gender: str, case: Case) -> bool:
    return (gender, case) in (("der", Case.NOMINATIVE), ("das", Case.NOMINATIVE), ("das", Case.ACCUSATIVE))


def adjective_form(word: Entry, after: Entry | None, gender: str, case: Case) -> str:
    """Return a German adjective with the ending that it has after a determiner, or without one."""
    uses = after.uses if after else ()
    if ("weak" not in uses and "mixed" not in uses) or ("mixed" in uses and _is_bare(gender, case)):
        return word.german[-1] + ENDINGS[gender][case]
    direct = case is Case.NOMINATIVE or (case is Case.ACCUSATIVE and gender != "der")
    return word.german[-1] + ("e" if direct and gender != PLURAL else "en")


def german_noun(word: Entry, gender: str, case: Case) -> str:
    """Return a German noun in a case."""
    singular, plural = word.german[1], word.german[-1]
    if gender == PLURAL:
        return plural + "n" if case is Case.DATIVE and not plural.endswith(("n", "s")) else plural
    if "weak" in word.uses and case is not Case.NOMINATIVE:
        return plural
    return singular


def present(infinitive: str, third: str, person: int, plural: bool) -> str:
    """Return a form of the present of a German verb; `third` is the third person singular."""
    if infinitive in FINITE:
        return FINITE[infinitive][3 if plural else person - 1]
    second = third[:-1] + ("t" if third[:-1].endswith(("s", "ß", "z")) else "st")
    stem = infinitive.removesuffix("n") if infinitive.endswith("ern") else infinitive.removesuffix("en")
    return infinitive if plural else (f"{stem}e", second, third)[person - 1]
