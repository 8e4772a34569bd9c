"""Phrases: noun phrases, names, prepositional phrases and adverbs. Each one renders itself in both languages."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from nmt.grammar import english, german
from nmt.grammar.determiners import BARE, NOT_A, Determiner
from nmt.grammar.features import Agreement, Case, Gender, Order
from nmt.grammar.lexicon.entries import Adjective, Noun


class Phrase(Protocol):
    """Anything that fills a place in a clause."""

    def english(self, case: Case) -> str:
        """Return the phrase in English."""

    def german(self, case: Case) -> str:
        """Return the phrase in German, in this case."""


class RelativeClause(Protocol):
    """A clause that modifies a noun; `nmt.grammar.clauses.Clause` is one."""

    def english_relative(self) -> str:
        """Return the clause in English."""

    def german(self, order: Order) -> str:
        """Return the clause in German, in this order."""

    def pairings(self, order: Order) -> Iterator[tuple[str, str, str]]:
        """Yield the combinations of words and frames that may be held out."""


class Nominal(Phrase, Protocol):
    """A phrase that can be a subject or an object."""

    @property
    def agreement(self) -> Agreement:
        """Person, number and gender."""

    @property
    def light(self) -> bool:
        """Whether the phrase is a pronoun, which German places early."""

    @property
    def definite(self) -> bool:
        """Whether the phrase refers to something known, which German places before the unknown."""


def words(*parts: str) -> str:
    """Join the parts that are not empty."""
    return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Determiner, adjective and noun, with an optional possessor (in German after the noun) and relative clause."""

    determiner: Determiner
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None
    possessor: "Nominal | None" = None
    relative: RelativeClause | None = None

    @property
    def agreement(self) -> Agreement:
        """Third person, with the noun's gender."""
        return Agreement(3, self.plural, self.noun.gender)

    @property
    def light(self) -> bool:
        """A full phrase is not light."""
        return False

    @property
    def definite(self) -> bool:
        """The definiteness of the determiner."""
        return self.determiner.definite

    def english(self, case: Case) -> str:
        """Return the phrase with its relative clause."""
        noun = self.noun.english_plural if self.plural else self.noun.english
        adjective = self.adjective.english if self.adjective else ""
        if self.possessor:
            owner = self.possessor.english(Case.GENITIVE)
            head = words(owner + ("'" if owner.endswith("s") else "'s"), adjective, noun)
        else:
            determiner = self._english_determiner(words(adjective, noun))
            head = words(determiner, adjective, noun)
        return words(head, self.relative.english_relative() if self.relative else "")

    def _english_determiner(self, rest: str) -> str:
        if self.plural:
            return self.determiner.plural
        if self.determiner is NOT_A and self.noun.mass:
            return "any"
        return english.article(rest) if self.determiner.singular == "a" else self.determiner.singular

    def german(self, case: Case) -> str:
        """Return the phrase without its relative clause, which the surrounding clause places."""
        gender = self.noun.gender
        determiner = self.determiner.in_german(case, gender, self.plural)
        adjective = ""
        if self.adjective:
            ending = german.adjective_ending(self.determiner.declension, case, gender, self.plural)
            adjective = german.adjective(self.adjective.german, ending)
        owner = self.possessor.german(Case.GENITIVE) if self.possessor else ""
        return words(determiner, adjective, self.german_noun(case), owner)

    def german_noun(self, case: Case) -> str:
        """Return the German noun in case and number."""
        noun = self.noun
        if self.plural:
            dative = case is Case.DATIVE and not noun.german_plural.endswith(("n", "s"))
            return noun.german_plural + ("n" if dative else "")
        if case is Case.NOMINATIVE:
            return noun.german
        if noun.weak:
            return noun.german_plural
        if case is Case.GENITIVE and noun.gender is not Gender.FEMININE:
            return german.genitive(noun.german)
        return noun.german


@dataclass(frozen=True, slots=True)
class Owned:
    """A thing with a named owner: Anna's car, Annas Auto."""

    owner: "Name"
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None
    relative: RelativeClause | None = None

    @property
    def agreement(self) -> Agreement:
        """Third person, with the noun's gender."""
        return Agreement(3, self.plural, self.noun.gender)

    @property
    def light(self) -> bool:
        """A full phrase is not light."""
        return False

    @property
    def definite(self) -> bool:
        """A possessor makes a phrase definite."""
        return True

    def _phrase(self) -> NounPhrase:
        return NounPhrase(BARE, self.noun, self.plural, self.adjective)

    def english(self, case: Case) -> str:
        """Return the owner, then the thing."""
        return f"{self.owner.english(case)}'s {self._phrase().english(case)}"

    def german(self, case: Case) -> str:
        """Return the owner, then the thing, with the adjective declined as without an article."""
        return f"{self.owner.german(case)}s {self._phrase().german(case)}"


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a person or a place; it does not inflect."""

    english_name: str
    german_name: str
    feminine: bool = False

    @property
    def agreement(self) -> Agreement:
        """Third person singular."""
        return Agreement(3, False, Gender.FEMININE if self.feminine else Gender.MASCULINE)

    @property
    def light(self) -> bool:
        """A name is a full phrase."""
        return False

    @property
    def definite(self) -> bool:
        """A name is definite."""
        return True

    def english(self, case: Case) -> str:
        """Return the name."""
        return self.english_name

    def german(self, case: Case) -> str:
        """Return the name."""
        return self.german_name


@dataclass(frozen=True, slots=True)
class Both:
    """Two nominals joined by and."""

    first: Nominal
    second: Nominal

    @property
    def agreement(self) -> Agreement:
        """Plural."""
        return Agreement(3, True)

    @property
    def light(self) -> bool:
        """A full phrase."""
        return False

    @property
    def definite(self) -> bool:
        """Definite if both are."""
        return self.first.definite and self.second.definite

    def english(self, case: Case) -> str:
        """Return both, joined by `and`."""
        return f"{self.first.english(case)} and {self.second.english(case)}"

    def german(self, case: Case) -> str:
        """Return both, joined by `und`."""
        return f"{self.first.german(case)} und {self.second.german(case)}"


@dataclass(frozen=True, slots=True)
class Fixed:
    """Words that do not change with the case: adverbs, clock times, numbers."""

    english_words: str
    german_words: str

    def english(self, case: Case) -> str:
        """Return the English words."""
        return self.english_words

    def german(self, case: Case) -> str:
        """Return the German words."""
        return self.german_words


@dataclass(frozen=True, slots=True)
class Prepositional:
    """A preposition with the case it governs and its nominal."""

    english_preposition: str
    german_preposition: str
    governs: Case
    nominal: Phrase

    def english(self, case: Case) -> str:
        """Return preposition and object form."""
        return words(self.english_preposition, self.nominal.english(Case.ACCUSATIVE))

    def german(self, case: Case) -> str:
        """Return preposition and nominal in the case it governs, contracted with an article if German does so."""
        return german.contract(self.german_preposition, self.nominal.german(self.governs))
