"""Phrases: noun phrases, names, pronouns, prepositional phrases and adverbs, which render themselves in a language."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from nmt.demo.grammar import english, german
from nmt.demo.grammar.determiners import NAMED, NOT_A, Determiner
from nmt.demo.grammar.features import Agreement, Case, Gender, Language
from nmt.demo.grammar.lexicon import Adjective, Noun
from nmt.demo.grammar.words import Word, Words, merged, say, spelled, with_ending

if TYPE_CHECKING:
    from nmt.demo.grammar.clauses import Clause


class Phrase(Protocol):
    """Anything that fills a place in a clause."""

    @property
    def light(self) -> bool:
        """Whether the phrase is a pronoun, which German places early."""

    @property
    def definite(self) -> bool:
        """Whether the phrase refers to something known, which German places before the unknown."""

    def render(self, language: Language, case: Case, at: str = "") -> Words:
        """Return the phrase in a language; `at` is the path of its place, with a dot at its end.

        The word that the other words of a phrase belong to expresses the element `head`.
        """


class Nominal(Phrase, Protocol):
    """A phrase that can be a subject or an object."""

    @property
    def agreement(self) -> Agreement:
        """Person, number and gender."""


class Full:
    """What most phrases have in common. It is no protocol, because `isinstance` takes long for these."""

    __slots__ = ()

    @property
    def light(self) -> bool:
        """A full phrase is not light."""
        return False

    @property
    def definite(self) -> bool:
        """A phrase is definite unless its determiner is not."""
        return True


@dataclass(frozen=True, slots=True)
class NounPhrase(Full):
    """Determiner, adjective and noun, with an optional possessor and relative clause.

    In German the possessor follows the noun unless it is a name, for which the determiner is `NAMED`.
    """

    determiner: Determiner
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None
    possessor: Nominal | None = None
    relative: "Clause | None" = None

    @property
    def agreement(self) -> Agreement:
        """Third person, with the noun's gender."""
        return Agreement(3, self.plural, self.noun.gender)

    @property
    def definite(self) -> bool:
        """The definiteness of the determiner."""
        return self.determiner.definite

    def render(self, language: Language, case: Case, at: str = "") -> Words:
        """Return the phrase; only in English with its relative clause, which a German clause places elsewhere."""
        inflected = self._english() if language is Language.ENGLISH else self._german(case)
        determiner, adjective, noun = inflected
        rest = (*say(adjective, f"{at}adjective"), *say(noun, f"{at}head"))
        if self.possessor:
            owner = self.possessor.render(language, Case.GENITIVE, f"{at}possessor.")
            if language is Language.ENGLISH:
                rest = (*with_ending(owner, english.possessive(owner[-1].text)), *rest)
            else:
                rest = (*with_ending(owner, "s"), *rest) if self.determiner is NAMED else (*rest, *owner)
        if determiner.count(" ") == 1:  # how many, wie viele
            first = tuple(Word(word, (f"{at}determiner{place}",)) for place, word in enumerate(determiner.split()))
        else:
            first = say(determiner, f"{at}determiner", f"{at}head")
        relative = self.relative if language is Language.ENGLISH else None
        return (*first, *rest, *(relative.english(f"{at}relative.") if relative else ()))

    def _english(self) -> tuple[str, str, str]:
        return self.english_determiner, self.adjective.english if self.adjective else "", self.english_noun

    @property
    def english_noun(self) -> str:
        """The English noun in its number."""
        return self.noun.english_plural if self.plural else self.noun.english

    @property
    def english_determiner(self) -> str:
        """The English determiner; empty if there is none, or a possessor instead."""
        if self.possessor:
            return ""
        if self.plural:
            return self.determiner.plural
        if self.determiner is NOT_A and self.noun.mass:
            return "any"
        first = self.adjective.english if self.adjective else self.noun.english
        return english.article(first) if self.determiner.singular == "a" else self.determiner.singular

    def _german(self, case: Case) -> tuple[str, str, str]:
        gender, adjective = self.noun.gender, ""
        if self.adjective:
            ending = german.adjective_ending(self.determiner.declension, case, gender, self.plural)
            adjective = german.adjective(self.adjective.german, ending)
        return self.determiner.in_german(case, gender, self.plural), adjective, self._german_noun(case)

    def _german_noun(self, case: Case) -> str:
        noun = self.noun
        if self.plural:
            dative = case is Case.DATIVE and not noun.german_plural.endswith(("n", "s"))
            return noun.german_plural + ("n" if dative else "")
        if case is not Case.NOMINATIVE and "weak" in noun.classes:
            return noun.german_plural
        if case is Case.GENITIVE and noun.gender is not Gender.FEMININE:
            return german.genitive(noun.german)
        return noun.german


@dataclass(frozen=True, slots=True)
class Name(Full):
    """The name of a person or a place; it does not inflect."""

    english: str
    german: str
    feminine: bool = False

    @property
    def agreement(self) -> Agreement:
        """Third person singular."""
        return Agreement(3, False, Gender.FEMININE if self.feminine else Gender.MASCULINE)

    def render(self, language: Language, case: Case, at: str = "") -> Words:
        """Return the name."""
        return say((self.english, self.german)[language], f"{at}head")


def owned(owner: Name, noun: Noun, plural: bool = False, adjective: Adjective | None = None) -> NounPhrase:
    """Return a thing with a named owner: Anna's car, Annas Auto."""
    return NounPhrase(NAMED, noun, plural, adjective, owner)


@dataclass(frozen=True, slots=True)
class Both(Full):
    """Two nominals joined by and."""

    first: Nominal
    second: Nominal

    @property
    def agreement(self) -> Agreement:
        """Plural."""
        return Agreement(3, True)

    def render(self, language: Language, case: Case, at: str = "") -> Words:
        """Return both, joined by `and`."""
        joining = Word(("and", "und")[language], (f"{at}and",))
        first, second = self.first, self.second
        return (*first.render(language, case, f"{at}first."), joining, *second.render(language, case, f"{at}second."))


@dataclass(frozen=True, slots=True)
class Pronoun(Full):
    """A personal pronoun."""

    agreement: Agreement

    @property
    def light(self) -> bool:
        """A pronoun is light."""
        return True

    def render(self, language: Language, case: Case, at: str = "") -> Words:
        """Return the form of the case; English has one for subjects and one for objects."""
        cell = self.agreement.person, self.agreement.plural
        if language is Language.ENGLISH:
            forms = english.SUBJECT_AND_OBJECT.get(cell) or english.THIRD_PERSON[self.agreement.gender]
            return say(forms[case is not Case.NOMINATIVE], f"{at}head")
        return say((german.PRONOUNS.get(cell) or german.THIRD_PERSON[self.agreement.gender])[case], f"{at}head")


@dataclass(frozen=True, slots=True)
class There(Full):
    """The subject of `there is` and `es gibt`; the English verb agrees with the object, the German one with es."""

    plural: bool

    @property
    def agreement(self) -> Agreement:
        """The German one: es."""
        return Agreement(3, False, Gender.NEUTER)

    @property
    def light(self) -> bool:
        """An expletive is a pronoun."""
        return True

    def render(self, language: Language, case: Case, at: str = "") -> Words:
        """Return the expletive."""
        return say(("there", "es")[language], f"{at}head")


@dataclass(frozen=True, slots=True)
class Asked(Full):
    """An interrogative or relative pronoun: who, what, whom, that."""

    agreement: Agreement
    human: bool
    relative: bool

    def render(self, language: Language, case: Case, at: str = "") -> Words:
        """Return who, whom, what or that; in German the relative pronoun of the agreement, or wer, wen, wem, was."""
        if language is Language.ENGLISH:
            thing = "that" if self.relative else "what"
            return say(("who" if case is Case.NOMINATIVE else "whom") if self.human else thing, f"{at}head")
        if self.relative:
            return say(german.relative(case, self.agreement.gender, self.agreement.plural), f"{at}head")
        return say(("wer", "wen", "wem")[case] if self.human else "was", f"{at}head")


@dataclass(frozen=True, slots=True)
class Than(Full):
    """The standard of a comparison."""

    standard: Nominal

    def render(self, language: Language, case: Case, at: str = "") -> Words:
        """Return `than` and the standard, in German in the case of what is compared."""
        return (Word(("than", "als")[language], (f"{at}than",)), *self.standard.render(language, case, at))


@dataclass(frozen=True, slots=True)
class Fixed(Full):
    """Words that do not change with the case: adverbs, clock times, numbers.

    Word by word they mean the same if both languages have the same number of words; otherwise only as a whole.
    """

    english: str
    german: str
    german_order: tuple[int, ...] = ()
    """The English place of each German word, if the languages order them differently."""

    def render(self, language: Language, case: Case, at: str = "") -> Words:
        """Return the words."""
        words = (self.english, self.german)[language].split()
        if self.english.count(" ") != self.german.count(" "):
            return tuple(Word(word, (), f"{at}head") for word in words)
        places = (language is Language.GERMAN and self.german_order) or range(len(words))
        return tuple(Word(word, (f"{at}word{place}",)) for place, word in zip(places, words, strict=True))


@dataclass(frozen=True, slots=True)
class Prepositional(Full):
    """A preposition with the case it governs and its nominal."""

    english: str
    german: str
    governs: Case
    nominal: Phrase

    def render(self, language: Language, case: Case, at: str = "") -> Words:
        """Return preposition and nominal, contracted with an article if German does so."""
        if language is Language.ENGLISH:
            preposition = say(self.english, f"{at}preposition", f"{at}head")
            return (*preposition, *self.nominal.render(language, Case.ACCUSATIVE, at))
        nominal = self.nominal.render(language, self.governs, at)
        preposition = say(self.german, f"{at}preposition", f"{at}head")
        first, *_ = german.contract(self.german, spelled(nominal)).split()
        if first == self.german:
            return (*preposition, *nominal)
        return (merged(first, preposition[0], nominal[0]), *nominal[1:])
