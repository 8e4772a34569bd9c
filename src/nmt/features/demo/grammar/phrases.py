"""Phrases: noun phrases, names, prepositional phrases and adverbs. Each one renders itself in both languages."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from nmt.features.demo.grammar import english, german
from nmt.features.demo.grammar.determiners import BARE, NOT_A, Determiner
from nmt.features.demo.grammar.features import Agreement, Case, Gender, Order
from nmt.features.demo.grammar.lexicon import Adjective, Noun
from nmt.features.demo.grammar.words import Word, Words, merged, say, spelled, with_ending


class Phrase(Protocol):
    """Anything that fills a place in a clause. `at` is the path of that place, with a dot at its end.

    The word that the other words of a phrase belong to expresses the element `head`.
    """

    def english(self, case: Case, at: str = "") -> Words:
        """Return the phrase in English."""

    def german(self, case: Case, at: str = "") -> Words:
        """Return the phrase in German, in this case."""


class RelativeClause(Protocol):
    """A clause that modifies a noun; `nmt.features.demo.grammar.clauses.Clause` is one."""

    def english_relative(self, at: str = "") -> Words:
        """Return the clause in English."""

    def german(self, order: Order, at: str = "") -> Words:
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

    def english(self, case: Case, at: str = "") -> Words:
        """Return the phrase with its relative clause."""
        noun = say(self.noun.english_plural if self.plural else self.noun.english, f"{at}head")
        adjective = say(self.adjective.english if self.adjective else "", f"{at}adjective")
        if self.possessor:
            owner = self.possessor.english(Case.GENITIVE, f"{at}possessor.")
            determiner = with_ending(owner, "'" if owner[-1].text.endswith("s") else "'s")
        else:
            determiner = self._name_determiner(self._english_determiner(spelled((*adjective, *noun))), at)
        relative = self.relative.english_relative(f"{at}relative.") if self.relative else ()
        return (*determiner, *adjective, *noun, *relative)

    def _name_determiner(self, text: str, at: str) -> Words:
        if text.count(" ") == 1:  # how many, wie viele
            return tuple(Word(word, (f"{at}determiner{place}",)) for place, word in enumerate(text.split()))
        return say(text, f"{at}determiner", f"{at}head")

    def _english_determiner(self, rest: str) -> str:
        if self.plural:
            return self.determiner.plural
        if self.determiner is NOT_A and self.noun.mass:
            return "any"
        return english.article(rest) if self.determiner.singular == "a" else self.determiner.singular

    def german(self, case: Case, at: str = "") -> Words:
        """Return the phrase without its relative clause, which the surrounding clause places."""
        gender = self.noun.gender
        determiner = self._name_determiner(self.determiner.in_german(case, gender, self.plural), at)
        adjective = ""
        if self.adjective:
            ending = german.adjective_ending(self.determiner.declension, case, gender, self.plural)
            adjective = german.adjective(self.adjective.german, ending)
        noun = say(self.german_noun(case), f"{at}head")
        owner = self.possessor.german(Case.GENITIVE, f"{at}possessor.") if self.possessor else ()
        return (*determiner, *say(adjective, f"{at}adjective"), *noun, *owner)

    def german_noun(self, case: Case) -> str:
        """Return the German noun in case and number."""
        noun = self.noun
        if self.plural:
            dative = case is Case.DATIVE and not noun.german_plural.endswith(("n", "s"))
            return noun.german_plural + ("n" if dative else "")
        if case is Case.NOMINATIVE:
            return noun.german
        if "weak" in noun.classes:
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

    def english(self, case: Case, at: str = "") -> Words:
        """Return the owner, then the thing."""
        owner = with_ending(self.owner.english(case, f"{at}possessor."), "'s")
        return (*owner, *self._phrase().english(case, at))

    def german(self, case: Case, at: str = "") -> Words:
        """Return the owner, then the thing, with the adjective declined as without an article."""
        owner = with_ending(self.owner.german(case, f"{at}possessor."), "s")
        return (*owner, *self._phrase().german(case, at))


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

    def english(self, case: Case, at: str = "") -> Words:
        """Return the name."""
        return say(self.english_name, f"{at}head")

    def german(self, case: Case, at: str = "") -> Words:
        """Return the name."""
        return say(self.german_name, f"{at}head")


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

    def english(self, case: Case, at: str = "") -> Words:
        """Return both, joined by `and`."""
        first, second = self.first.english(case, f"{at}first."), self.second.english(case, f"{at}second.")
        return (*first, Word("and", (f"{at}and",)), *second)

    def german(self, case: Case, at: str = "") -> Words:
        """Return both, joined by `und`."""
        first, second = self.first.german(case, f"{at}first."), self.second.german(case, f"{at}second.")
        return (*first, Word("und", (f"{at}and",)), *second)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Words that do not change with the case: adverbs, clock times, numbers.

    Word by word they mean the same if both languages have the same number of words; otherwise only as a whole.
    """

    english_words: str
    german_words: str
    german_order: tuple[int, ...] = ()
    """The English place of each German word, if the languages order them differently."""

    def english(self, case: Case, at: str = "") -> Words:
        """Return the English words."""
        return self._named(self.english_words.split(), (), at)

    def german(self, case: Case, at: str = "") -> Words:
        """Return the German words."""
        return self._named(self.german_words.split(), self.german_order, at)

    def _named(self, words: list[str], order: tuple[int, ...], at: str) -> Words:
        if self.english_words.count(" ") != self.german_words.count(" "):
            return tuple(Word(word, (), f"{at}head") for word in words)
        places = order or range(len(words))
        return tuple(Word(word, (f"{at}word{place}",)) for place, word in zip(places, words, strict=True))


@dataclass(frozen=True, slots=True)
class Prepositional:
    """A preposition with the case it governs and its nominal."""

    english_preposition: str
    german_preposition: str
    governs: Case
    nominal: Phrase

    def english(self, case: Case, at: str = "") -> Words:
        """Return preposition and object form."""
        preposition = say(self.english_preposition, f"{at}preposition", f"{at}head")
        return (*preposition, *self.nominal.english(Case.ACCUSATIVE, at))

    def german(self, case: Case, at: str = "") -> Words:
        """Return preposition and nominal in the case it governs, contracted with an article if German does so."""
        (preposition,) = say(self.german_preposition, f"{at}preposition", f"{at}head")
        nominal = self.nominal.german(self.governs, at)
        first, *_ = german.contract(preposition.text, spelled(nominal)).split()
        if first == preposition.text:
            return (preposition, *nominal)
        return (merged(first, preposition, nominal[0]), *nominal[1:])
