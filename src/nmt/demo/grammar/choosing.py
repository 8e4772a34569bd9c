"""Choose noun phrases for persons that make sense in their place."""

from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import TypeVar

from nmt.demo.grammar import lexicon
from nmt.demo.grammar.determiners import (
    ALL,
    EVERY,
    MANY,
    NAMED,
    NUMERALS,
    POSSESSIVES,
    SOME,
    THE,
    THIS,
    A,
    Determiner,
)
from nmt.demo.grammar.features import Agreement, Gender
from nmt.demo.grammar.lexicon import Adjective, Noun
from nmt.demo.grammar.phrases import Both, Name, Nominal, NounPhrase, Pronoun, owned

T = TypeVar("T")
_I, YOU, HE, SHE, _WE, THEY = PERSONS = tuple(
    Pronoun(agreement)
    for agreement in (
        *(Agreement(1, False), Agreement(2, False), Agreement(3, False), Agreement(3, False, Gender.FEMININE)),
        *(Agreement(1, True), Agreement(3, True)),
    )
)
OWNERS = dict(zip(PERSONS, POSSESSIVES, strict=True))
MALE_NAMES = tuple(Name(name, name) for name in lexicon.MEN)
NAMES = (*(Name(name, name, True) for name in lexicon.WOMEN), *MALE_NAMES)
UNIQUE = frozenset(lexicon.GROUPS["unique"])


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


class Chooser:
    """Draws phrases from the lexicon; uses each noun or name at most once per sentence."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.any_of = random.choice
        self.used: set[str] = set()

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self.random.random() < probability

    def one_of(self, weighted: Mapping[T, float]) -> T:
        """Draw one of the keys with probabilities proportional to the weights."""
        return self.random.choices(list(weighted), list(weighted.values()))[0]

    def noun(self, classes: tuple[str, ...], excluded: tuple[str, ...] = ()) -> Noun:
        """Draw a noun of some classes, and not of the excluded ones, that the sentence does not use yet."""
        pool = [noun for noun in lexicon.nouns_of(classes) if noun.classes.isdisjoint(excluded)]
        noun = self.any_of([noun for noun in pool if noun.english not in self.used] or pool)
        self.used.add(noun.english)
        return noun

    def name(self, names: Sequence[Name] = NAMES) -> Name:
        """Draw a name of a person."""
        name = self.any_of([name for name in names if name.english not in self.used])
        self.used.add(name.english)
        return name

    def adjective(self, noun: Noun, probability: float) -> Adjective | None:
        """Draw an adjective for a noun with the given probability."""
        fitting = [word for word in adjectives(noun) if word.english not in self.used]
        if not fitting or not self.chance(probability):
            return None
        adjective = self.any_of(fitting)
        self.used.add(adjective.english)
        return adjective

    def subject(self, classes: tuple[str, ...], full: bool = False) -> Nominal:
        """Draw a subject; `full` excludes pronouns and indefinite phrases."""
        persons = "person" in classes
        if persons and not full and self.chance(0.25):
            return self.any_of(PERSONS)
        if persons and self.chance(0.22):
            return self.name()
        if persons and not full and self.chance(0.04):
            return Both(self.name(), self.name())
        if "family" in classes and self.chance(0.3):
            return self.relation(None)
        return self._known(self.noun(tuple(name for name in classes if name != "family")), full)

    def _known(self, noun: Noun, full: bool) -> Nominal:
        adjective = self.adjective(noun, 0.3)
        if noun.classes & {"mate", "family"}:
            return NounPhrase(self.any_of(POSSESSIVES), noun, "pl" in noun.classes, adjective)
        plural = not noun.classes.isdisjoint(("pl", "pair"))
        if noun.mass or noun.classes & UNIQUE or plural:
            return NounPhrase(THE, noun, plural, adjective)
        weights = {"the": 60, "plural": 16, "this": 5, "every": 4, "a": 8, "many": 6}
        if full:
            weights |= {"every": 0, "a": 0, "many": 0}
        shape = self.one_of(weights)
        if shape == "plural":
            return NounPhrase(self.any_of((THE, THE, THE, THIS, *NUMERALS[:2])), noun, True, adjective)
        if shape == "many":
            return NounPhrase(self.any_of((MANY, SOME, MANY, SOME, ALL)), noun, True, adjective)
        return NounPhrase({"the": THE, "this": THIS, "every": EVERY, "a": A}[shape], noun, False, adjective)

    def relation(self, owner: Determiner | None, excluded: tuple[str, ...] = ()) -> NounPhrase:
        """Draw a member of someone's family."""
        noun = self.noun(("family",), excluded)
        plural = "pl" in noun.classes
        if owner is None and self.chance(0.15):
            return owned(self.name(), noun, plural)
        return NounPhrase(owner or self.any_of(POSSESSIVES), noun, plural)

    def person(self, subject: Nominal, generic: bool = False, kin: bool = True) -> Nominal:
        """Draw a person who is not the subject; `generic` draws a person the subject knows, for habitual actions."""
        owner = kin_owner(subject)
        shape = self.one_of({"pronoun": 20, "name": 20, "relation": 30 if kin else 0, "noun": 10 if generic else 30})
        if shape == "pronoun":
            return self._other(subject)
        if shape == "name":
            return self.name()
        if shape == "relation":
            excluded = ("young",) if is_young(subject) else ()
            return self.relation(owner if owner and self.chance(0.8) else None, excluded)
        noun = self.noun(("mate",) if generic else ("person",))
        if "mate" in noun.classes:
            return NounPhrase(owner or self.any_of(POSSESSIVES), noun, False, self.adjective(noun, 0.2))
        return NounPhrase(self.any_of((THE, THE, THE, A)), noun, False, self.adjective(noun, 0.25))

    def _other(self, subject: Nominal) -> Pronoun:
        """Draw a pronoun for someone who is not the subject or a member of it."""
        person, same = subject.agreement.person, (THEY, pronoun(subject))
        return self.any_of(
            [each for each in PERSONS if each.agreement.person != person or (person == 3 and each not in same)]
        )


def pronoun(subject: Nominal) -> Pronoun | None:
    """Return the pronoun that refers back to a person, if both languages agree on it."""
    if isinstance(subject, Pronoun):
        return subject
    if subject.agreement.plural:
        return THEY
    if isinstance(subject, NounPhrase):
        return {"he": HE, "she": SHE}.get(subject.noun.pronoun)
    return SHE if subject.agreement.gender is Gender.FEMININE else HE


def possessive(subject: Nominal) -> Determiner | None:
    """Return the possessive that refers to the subject, if both languages agree on it."""
    owner = pronoun(subject)
    return OWNERS[owner] if owner else None


def kin_owner(subject: Nominal) -> Determiner | None:
    """Return the possessive for relatives of the subject; groups get none, because they do not share a mother."""
    crowd = isinstance(subject, NounPhrase) and subject.plural and subject.determiner is not NAMED
    return None if crowd else possessive(subject)


def is_each(subject: Nominal) -> bool:
    """Return whether the subject is `every` or `all` of a kind; clauses about these are not negated or explained."""
    return isinstance(subject, NounPhrase) and subject.determiner in (EVERY, ALL)


def is_young(subject: Nominal) -> bool:
    """Return whether the subject is a child."""
    return isinstance(subject, NounPhrase) and "young" in subject.noun.classes


def is_woman(subject: Nominal) -> bool:
    """Return whether the subject is one woman."""
    return subject.agreement.gender is Gender.FEMININE and not subject.agreement.plural
