"""Choose noun phrases that make sense in their place."""

from functools import cache
from random import Random
from typing import TypeVar

from nmt.features.demo.grammar import lexicon
from nmt.features.demo.grammar.determiners import (
    ALL,
    EVERY,
    HER,
    HIS,
    MANY,
    MY,
    NAMED,
    NUMERALS,
    OUR,
    POSSESSIVES,
    SOME,
    THE,
    THEIR,
    THIS,
    YOUR,
    A,
    Determiner,
)
from nmt.features.demo.grammar.features import Agreement, Gender
from nmt.features.demo.grammar.lexicon import Adjective, Noun
from nmt.features.demo.grammar.phrases import Both, Name, Nominal, NounPhrase, Pronoun, owned

T = TypeVar("T")
TWO, THREE = NUMERALS[:2]
PERSONS = tuple(
    Pronoun(agreement)
    for agreement in (
        Agreement(1, False),
        Agreement(2, False),
        Agreement(3, False, Gender.MASCULINE),
        Agreement(3, False, Gender.FEMININE),
        Agreement(1, True),
        Agreement(3, True),
    )
)
_, YOU, HE, SHE, _, THEY = PERSONS
NAMES = tuple(Name(name, name, True) for name in lexicon.WOMEN) + tuple(Name(name, name) for name in lexicon.MEN)
MALE_NAMES = tuple(name for name in NAMES if not name.feminine)

UNIQUE = frozenset(
    [
        "sun",
        "weather",
        "storm",
        "wall",
        "roof",
        "transport",
        "museum",
        "holiday",
        "heating",
        "gate",
        "race",
        "exam",
        "prize",
    ]
)
"""Classes of nouns that are singular and not counted."""


@cache
def adjectives(noun: Noun, predicative: bool = False) -> tuple[Adjective, ...]:
    """Return the adjectives that make sense with a noun, as attributes or, if `predicative`, also after `is`."""
    return tuple(
        adjective
        for adjective in lexicon.ADJECTIVES
        if (predicative or "predicative" not in adjective.flags)
        and not noun.classes.isdisjoint(adjective.classes)
        and not any(f"-{name}" in adjective.classes for name in noun.classes)
    )


@cache
def candidates(classes: tuple[str, ...]) -> tuple[Noun, ...]:
    """Return the nouns of some classes."""
    return lexicon.nouns_of(classes)


class Chooser:
    """Draws phrases from the lexicon; uses each noun or name at most once per sentence."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.used: set[str] = set()

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self.random.random() < probability

    def one_of(self, weighted: dict[T, float]) -> T:
        """Draw one of the keys with probabilities proportional to the weights."""
        return self.random.choices(list(weighted), list(weighted.values()))[0]

    def noun(self, classes: tuple[str, ...], excluded: tuple[str, ...] = ()) -> Noun:
        """Draw a noun of some classes, and not of the excluded ones, that the sentence does not use yet."""
        pool = [noun for noun in candidates(classes) if noun.classes.isdisjoint(excluded)]
        fresh = [noun for noun in pool if noun.english not in self.used]
        noun = self.random.choice(fresh or pool)
        self.used.add(noun.english)
        return noun

    def name(self) -> Name:
        """Draw a name of a person."""
        name = self.random.choice([name for name in NAMES if name.english not in self.used])
        self.used.add(name.english)
        return name

    def man(self) -> Name:
        """Draw a name of a man."""
        name = self.random.choice([name for name in MALE_NAMES if name.english not in self.used])
        self.used.add(name.english)
        return name

    def adjective(self, noun: Noun, probability: float) -> Adjective | None:
        """Draw an adjective for a noun with the given probability."""
        fitting = [word for word in adjectives(noun) if word.english not in self.used]
        if not fitting or not self.chance(probability):
            return None
        adjective = self.random.choice(fitting)
        self.used.add(adjective.english)
        return adjective

    def subject(self, classes: tuple[str, ...], full: bool = False) -> Nominal:
        """Draw a subject; `full` excludes pronouns and indefinite phrases."""
        persons = "person" in classes
        if persons and not full and self.chance(0.25):
            return self.random.choice(PERSONS)
        if persons and self.chance(0.22):
            return self.name()
        if persons and not full and self.chance(0.04):
            return Both(self.name(), self.name())
        if "family" in classes and self.chance(0.3):
            return self.relation(None)
        people = tuple(name for name in classes if name != "family")
        return self.known(self.noun(people), full)

    def known(self, noun: Noun, full: bool) -> Nominal:
        """Draw determiner and adjective for a subject noun."""
        adjective = self.adjective(noun, 0.3)
        if noun.classes & {"mate", "family"}:
            return NounPhrase(self.random.choice(POSSESSIVES), noun, "pl" in noun.classes, adjective)
        if noun.mass or noun.classes & UNIQUE:
            return NounPhrase(THE, noun, False, adjective)
        if "pl" in noun.classes or "pair" in noun.classes:
            return NounPhrase(THE, noun, True, adjective)
        shape = self.one_of(
            {
                "the": 60,
                "plural": 16,
                "this": 5,
                "every": 0 if full else 4,
                "a": 0 if full else 8,
                "many": 0 if full else 6,
            }
        )
        if shape == "plural":
            return NounPhrase(self.random.choice((THE, THE, THE, THIS, TWO, THREE)), noun, True, adjective)
        if shape == "many":
            return NounPhrase(self.random.choice((MANY, SOME, MANY, SOME, ALL)), noun, True, adjective)
        return NounPhrase({"the": THE, "this": THIS, "every": EVERY, "a": A}[shape], noun, False, adjective)

    def relation(self, owner: Determiner | None, excluded: tuple[str, ...] = ()) -> Nominal:
        """Draw a member of someone's family."""
        noun = self.noun(("family",), excluded)
        plural = "pl" in noun.classes
        if owner is None and self.chance(0.15):
            return owned(self.name(), noun, plural)
        return NounPhrase(owner or self.random.choice(POSSESSIVES), noun, plural)

    def person(self, subject: Nominal, generic: bool = False, kin: bool = True) -> Nominal:
        """Draw a person who is not the subject; `generic` draws a person the subject knows, for habitual actions."""
        owner = kin_owner(subject)
        shape = self.one_of({"pronoun": 20, "name": 20, "relation": 30 if kin else 0, "noun": 10 if generic else 30})
        if shape == "pronoun":
            return self.other(subject)
        if shape == "name":
            return self.name()
        if shape == "relation":
            excluded = ("young",) if is_young(subject) else ()
            return self.relation(owner if owner and self.chance(0.8) else None, excluded)
        noun = self.noun(("mate",) if generic else ("person",))
        if "mate" in noun.classes:
            return NounPhrase(owner or self.random.choice(POSSESSIVES), noun, False, self.adjective(noun, 0.2))
        return NounPhrase(self.random.choice((THE, THE, THE, A)), noun, False, self.adjective(noun, 0.25))

    def other(self, subject: Nominal) -> Pronoun:
        """Draw a pronoun for someone who is not the subject or a member of it."""
        agreement = subject.agreement
        return self.random.choice(
            [
                person
                for person in PERSONS
                if person.agreement.person != agreement.person
                or (agreement.person == 3 and person not in (THEY, pronoun(subject)))
            ]
        )


def possessive(subject: Nominal) -> Determiner | None:
    """Return the possessive that refers to the subject, if both languages agree on it."""
    agreement = subject.agreement
    if isinstance(subject, NounPhrase) and not agreement.plural:
        return {"he": HIS, "she": HER}.get(subject.noun.pronoun)
    if agreement.plural:
        return OUR if agreement.person == 1 else THEIR
    if agreement.person < 3:
        return MY if agreement.person == 1 else YOUR
    return HER if agreement.gender is Gender.FEMININE else HIS


def is_each(subject: Nominal) -> bool:
    """Return whether the subject is `every` or `all` of a kind; clauses about these are not negated or explained."""
    return isinstance(subject, NounPhrase) and subject.determiner in (EVERY, ALL)


def is_young(subject: Nominal) -> bool:
    """Return whether the subject is a child."""
    return isinstance(subject, NounPhrase) and "young" in subject.noun.classes


def kin_owner(subject: Nominal) -> Determiner | None:
    """Return the possessive for relatives of the subject; groups get none, because they do not share a mother."""
    crowd = isinstance(subject, NounPhrase) and subject.plural and subject.determiner is not NAMED
    return None if crowd else possessive(subject)


def pronoun(subject: Nominal) -> Pronoun | None:
    """Return the pronoun that refers back to a person, if both languages agree on it."""
    if isinstance(subject, Pronoun):
        return subject
    if subject.agreement.plural:
        return THEY
    if isinstance(subject, NounPhrase):
        return {"he": HE, "she": SHE}.get(subject.noun.pronoun)
    return SHE if subject.agreement.gender is Gender.FEMININE else HE
