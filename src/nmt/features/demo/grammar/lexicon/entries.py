"""The entries of the lexicon, and the reader of its tables."""

from collections.abc import Iterator
from dataclasses import dataclass

from nmt.features.demo.grammar.features import Case, Gender


@dataclass(frozen=True, slots=True, eq=False)
class Place:
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
    def weak(self) -> bool:
        """Whether the noun declines like Student (den Studenten)."""
        return "weak" in self.classes

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
    """An adverbial that does not inflect; `uses` lists the tenses or verbs it goes with."""

    english: str
    german: str
    uses: frozenset[str]


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

    name: str
    """The English verb with its German counterpart: verbs with the same name differ only in their frames."""
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

    @property
    def reflexive(self) -> bool:
        """Whether the German verb takes sich."""
        return "sich" in self.flags


def rows(table: str) -> Iterator[list[str]]:
    """Yield the lines of a table, split at their bars."""
    for line in table.strip().splitlines():
        if line.strip():
            yield [cell.strip() for cell in line.split("|")]
