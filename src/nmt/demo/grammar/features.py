"""The grammatical categories of both languages."""

from dataclasses import dataclass
from enum import Enum, IntEnum


class Language(IntEnum):
    """A language of the demo; also the index into pairs of words."""

    ENGLISH = 0
    GERMAN = 1


class Case(IntEnum):
    """German case; also the index into the tables of endings."""

    NOMINATIVE = 0
    ACCUSATIVE = 1
    DATIVE = 2
    GENITIVE = 3


class Gender(Enum):
    """Grammatical gender, spelt as the definite article of the nominative."""

    MASCULINE = "der"
    FEMININE = "die"
    NEUTER = "das"


class Tense(Enum):
    """Tense and aspect of the English verb; `verbgroup.py` has the corresponding German tense."""

    PRESENT = "present"
    PAST = "past"
    PERFECT = "perfect"
    PLUPERFECT = "pluperfect"
    FUTURE = "future"
    PROGRESSIVE = "progressive"
    SINCE = "since"
    """Has been doing for some time; the simple present in German."""
    PASSIVE = "passive"
    """Simple past, passive voice."""


class Order(Enum):
    """The position of the verb in a German clause."""

    FIRST = "first"
    SECOND = "second"
    LAST = "last"
    ZU = "zu"


@dataclass(frozen=True, slots=True)
class Agreement:
    """The features of a noun phrase that verbs and pronouns agree with."""

    person: int
    plural: bool
    gender: Gender = Gender.MASCULINE

    @property
    def third_singular(self) -> bool:
        """Whether an English present takes -s."""
        return self.person == 3 and not self.plural
