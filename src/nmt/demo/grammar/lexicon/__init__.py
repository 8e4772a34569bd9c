"""The words of the demo grammar: the entries of the lexicon, read from the tables beside this file.

A table has a line per word, with bars between its cells, `[section]` lines, and comments that explain its cells.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nmt.demo.grammar import english, german
from nmt.demo.grammar.features import Case, Gender


class Place(NamedTuple):
    """The prepositions of a noun as a place: `at` in English; those of place and of direction in German."""

    english: str
    where: str
    whereto: str


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun of both languages, with the semantic classes that verbs and adjectives select."""

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: Gender
    classes: frozenset[str]
    place: Place | None

    @property
    def mass(self) -> bool:
        """Whether the noun has no plural and takes no indefinite article."""
        return not self.german_plural

    @property
    def pronoun(self) -> str:
        """The English pronoun that refers back to the noun; empty if the languages would differ."""
        return next((word for word in ("he", "she") if word in self.classes), "")


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective and the classes of nouns it makes sense with."""

    english: str
    german: str
    classes: tuple[str, ...]
    flags: frozenset[str]


@dataclass(frozen=True, slots=True, eq=False)
class Adverb:
    """An adverbial, number or name that does not inflect; `use` lists what it goes with."""

    english: str
    german: str
    use: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Complement:
    """A constituent that a verb requires besides its subject."""

    kind: str
    """`acc`, `dat`, `oblique`, `to` (direction), `at` (place), `predicate`."""
    classes: tuple[str, ...]
    english: str = ""
    german: str = ""
    case: Case = Case.ACCUSATIVE


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb of both languages with its principal parts and its frame."""

    english: tuple[str, str, str]
    """Base, past and past participle, without the particle."""
    particle: str
    german: tuple[str, str, str]
    """Infinitive without a separable prefix, third person singular, past participle."""
    prefix: str
    du: str
    subjects: tuple[str, ...]
    complements: tuple[Complement, ...]
    places: tuple[str, ...]
    manners: tuple[str, ...]
    flags: frozenset[str]
    base: str
    """The English base with its particle."""
    name: str
    """The base with its German counterpart: verbs with the same name differ only in their frames."""


def _table(name: str) -> dict[str, list[list[str]]]:
    """Return the rows of a table, by section."""
    sections: dict[str, list[list[str]]] = {}
    for line in Path(__file__).with_name(f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            sections[line.strip("[]")] = []
        elif line and not line.startswith("#"):
            sections[list(sections)[-1]].append([cell.strip() for cell in line.split("|")])
    return sections


def _noun(singular_and_plural: str, article_and_german: str, german_plural: str, tags: str) -> Noun:
    singular, _, plural = singular_and_plural.partition("/")
    article, _, word = article_and_german.partition(" ")
    places = [Place(*tag[3:].split("/")) for tag in tags.split() if tag.startswith("at=")]
    classes = frozenset(tag for tag in (*tags.split(), singular.replace(" ", "_")) if not tag.startswith("at="))
    return Noun(
        singular,
        plural or f"{singular}s",
        word,
        german_plural.strip("-"),
        Gender(article),
        classes,
        places[0] if places else None,
    )


def _complement(mark: str) -> Complement:
    kind, _, names = mark.partition("=")
    classes = tuple(filter(None, names.split(",")))
    if "/" not in kind:
        return Complement(kind, classes, case=Case.DATIVE if kind in ("dat", "at") else Case.ACCUSATIVE)
    preposition, german_preposition, case = kind.split("/")
    governed = Case.DATIVE if case == "dat" else Case.ACCUSATIVE
    return Complement("oblique", classes, preposition.strip("-"), german_preposition, governed)


def _verb(english_cell: str, german_cell: str, subjects: str, complements: str, marks: str) -> Verb:
    head, *forms = english_cell.split()
    base, _, particle = head.replace("~", " ").partition(" ")
    past, participle = forms if len(forms) == 2 else (forms or [english.regular_past(base)]) * 2
    head, *forms = german_cell.split()
    prefix, _, infinitive = head.rpartition("-")
    du = [form[3:] for form in forms if form.startswith("du:")]
    third, perfect = forms[:2] if len(forms) > 1 else german.weak_parts(infinitive, prefix)
    whole = f"{base} {particle}".strip()
    return Verb(
        english=(base, past, participle),
        particle=particle,
        german=(infinitive, third, perfect),
        prefix=prefix,
        du=du[0] if du else german.second_person(third),
        subjects=tuple(subjects.split()),
        complements=tuple(map(_complement, complements.split())),
        places=tuple(mark[1:] for mark in marks.split() if mark[0] == "@"),
        manners=tuple(mark[1:] for mark in marks.split() if mark[0] == "%"),
        flags=frozenset(mark for mark in marks.split() if mark[0] not in "@%"),
        base=whole,
        name=f"{whole}={prefix}{infinitive}",
    )


def _adverbs(rows: Iterable[list[str]]) -> tuple[Adverb, ...]:
    return tuple(Adverb(row[0], row[1], tuple(row[2].split()) if len(row) > 2 else ()) for row in rows)


NOUNS = tuple(_noun(*row) for rows in _table("nouns").values() for row in rows)
ADJECTIVES = tuple(
    Adjective(row[0], row[1], tuple(row[2].split()), frozenset(row[3].split() if len(row) > 3 else ()))
    for row in _table("adjectives")["adjectives"]
)
_SECTIONS = {section: tuple(_verb(*row) for row in rows) for section, rows in _table("verbs").items()}
RAIN, SNOW = _SECTIONS.pop("weather")
BE, COST, BECOME, EXIST = _SECTIONS.pop("special")
MATRIX = _SECTIONS.pop("control")
"""Verbs whose object is a clause."""
ACTIVITIES = tuple(verb for verbs in _SECTIONS.values() for verb in verbs)
VERBS = (*ACTIVITIES, RAIN, SNOW, BE, COST, BECOME, EXIST, *MATRIX)
_OTHERS = _table("adverbs_and_names")
MANNER = {adverb.english: adverb for adverb in _adverbs(_OTHERS["manner"])}
FREQUENCY, TIME, COMMENT, NUMBER, TOWN, LAND = (
    _adverbs(_OTHERS[section]) for section in ("frequency", "time", "comment", "number", "town", "land")
)
_GROUPS = _table("groups")
GROUPS = {name: tuple(words.split()) for name, words in (*_GROUPS["classes"], *_GROUPS["verbs"])}
ENDS, REQUIRES, DONE_BY = (dict(_GROUPS[section]) for section in ("ends", "requires", "done by"))
WOMEN, MEN = _OTHERS["woman"][0], _OTHERS["man"][0]


@cache
def nouns_of(classes: tuple[str, ...]) -> tuple[Noun, ...]:
    """Return the nouns that belong to one of the classes, in the order of the table."""
    return tuple(noun for noun in NOUNS if not noun.classes.isdisjoint(classes))


def noun_named(name: str) -> Noun:
    """Return the noun with this English singular."""
    return next(noun for noun in NOUNS if noun.english == name)


def verb_named(name: str) -> Verb:
    """Return the first verb with this English base, with `_` before a particle."""
    return next(verb for verb in VERBS if verb.base == name.replace("_", " "))


@cache
def verbs_with(flag: str) -> tuple[Verb, ...]:
    """Return the verbs of activities with a flag."""
    return tuple(verb for verb in ACTIVITIES if flag in verb.flags)
