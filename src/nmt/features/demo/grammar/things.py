"""Choose things and places that make sense in their place."""

from nmt.features.demo.grammar import lexicon
from nmt.features.demo.grammar.choosing import UNIQUE, Chooser, candidates, possessive
from nmt.features.demo.grammar.determiners import (
    BARE,
    MANY,
    MEAL,
    NOT_A,
    NUMERALS,
    OUR,
    POSSESSIVES,
    SOME,
    THE,
    THEIR,
    THIS,
    A,
    Determiner,
)
from nmt.features.demo.grammar.features import Case, Gender
from nmt.features.demo.grammar.lexicon import Adjective, Noun
from nmt.features.demo.grammar.phrases import Name, Nominal, NounPhrase, Prepositional, owned

SMALL_NUMERALS = NUMERALS[:4]
TOWNS = tuple(Name(town.english, town.german) for town in lexicon.TOWN)
LANDS = tuple(Name(land.english, land.german) for land in lexicon.LAND)
POSSESSABLE = frozenset(
    [
        "clothing",
        "small",
        "parkable",
        "machine",
        "pet",
        "furniture",
        "toy",
        "home",
        "packable",
        "own",
        "tool",
        "instrument",
        "text",
        "plan",
        "idea",
        "mistake",
    ]
)
WITHOUT_ARTICLE = frozenset(["sport", "subject", "studies", "time", "aid", "money"])
COUNTABLE = frozenset(["fruit", "collectible", "animal", "flower", "baked", "text"])
"""Classes of nouns that can be counted up to a dozen."""


class Supplier(Chooser):
    """Draws things and places."""

    def own_clothing(self, subject: Nominal, negated: bool, worn: bool) -> NounPhrase:
        """Draw a piece of clothing that suits the subject."""
        woman = subject.agreement.gender is Gender.FEMININE and not subject.agreement.plural
        excluded = (() if woman else ("womens",)) + (() if worn else ("headwear",))
        noun = self.noun(("clothing",), excluded)
        plural = subject.agreement.plural or "pair" in noun.classes
        owner = possessive(subject)
        determiner = owner if owner and self.chance(0.6) else THE
        if not subject.agreement.plural and self.chance(0.5):
            determiner = NOT_A if negated else (BARE if plural else A)
        return NounPhrase(determiner, noun, plural, self.adjective(noun, 0.4))

    def generic(self, classes: tuple[str, ...], excluded: tuple[str, ...] = ()) -> NounPhrase:
        """Draw things of a kind, such as books or cold milk."""
        noun = self.noun(classes, excluded)
        if "meal" in noun.classes:
            return NounPhrase(MEAL, noun)
        article = noun.classes & UNIQUE and not noun.classes & WITHOUT_ARTICLE
        return NounPhrase(THE if article else BARE, noun, not noun.mass and not article, self.adjective(noun, 0.25))

    def thing(
        self,
        classes: tuple[str, ...],
        owner: Determiner | None,
        negated: bool,
        one: bool = False,
        excluded: tuple[str, ...] = (),
    ) -> Nominal:
        """Draw an object that is not a person."""
        if "town" in classes and self.chance(0.5):
            return self.random.choice(TOWNS)
        noun = self.noun(tuple(name for name in classes if name not in ("town", "land")), excluded)
        adjective = self.adjective(noun, 0.38)
        if noun.classes & WITHOUT_ARTICLE:
            return NounPhrase(NOT_A if negated and noun.classes & {"time", "aid", "money"} else BARE, noun)
        if "meal" in noun.classes:
            return NounPhrase(MEAL, noun)
        if noun.mass or noun.classes & UNIQUE:
            return NounPhrase(self.single(noun, negated), noun, False, adjective)
        possessed = owner if owner and noun.classes & POSSESSABLE else None
        return self._counted(noun, adjective, possessed, negated, one)

    def single(self, noun: Noun, negated: bool) -> Determiner:
        """Draw the determiner of a noun that is not counted."""
        if noun.classes & UNIQUE:
            return THE if noun.mass else self.random.choice((THE, THE, NOT_A if negated else A))
        return self.random.choice((THE, NOT_A if negated else BARE))

    def _counted(
        self, noun: Noun, adjective: Adjective | None, owner: Determiner | None, negated: bool, one: bool
    ) -> Nominal:
        pair = "pair" in noun.classes
        weights = {"the": 34.0, "a": 30, "this": 5, "owner": 26 if owner else 0, "kin": 5 if owner else 0}
        weights["name"] = 5 if owner else 0
        weights["plural"] = 0 if one else 6
        weights["counted"] = 0 if one or negated or pair else 11
        shape = self.one_of(weights)
        plural = pair or shape in ("plural", "counted")
        if shape == "name":
            return owned(self.name(), noun, plural, adjective)
        if shape == "kin":
            return NounPhrase(THE, noun, plural, adjective, possessor=self.relation(self.random.choice(POSSESSIVES)))
        if shape == "owner":
            plural |= not one and owner in (OUR, THEIR) and "own" not in noun.classes
        numbers = NUMERALS if noun.classes & COUNTABLE else SMALL_NUMERALS
        known = plural and not pair and self.chance(0.4)
        determiner = {
            "the": THE,
            "this": THIS,
            "owner": owner or THE,
            "counted": self.random.choice((*numbers, MANY, SOME, MANY, SOME)),
            "plural": THE if known else NOT_A if negated else BARE,
            "a": NOT_A if negated else BARE if plural else A,
        }[shape]
        return NounPhrase(determiner, noun, plural, adjective)

    def place(
        self, classes: tuple[str, ...], owner: Determiner | None, direction: bool, within: str = ""
    ) -> Prepositional:
        """Draw a place or a direction."""
        if "town" in classes and self.chance(0.4 if len(classes) < 3 else 0.5):
            return self.town("land" in classes, direction)
        pool = tuple(
            noun
            for noun in candidates(classes)
            if noun.place and noun.english not in self.used and (not within or within in noun.classes)
        )
        if not pool:
            return self.town("land" in classes, direction)
        noun = self.random.choice(pool)
        self.used.add(noun.english)
        assert noun.place is not None
        determiner: Determiner = THE
        if "own" in noun.classes and owner and self.chance(0.5):
            determiner = owner
        nominal = NounPhrase(determiner, noun, False, self.adjective(noun, 0.25))
        if direction:
            case = Case.DATIVE if noun.place.whereto == "zu" else Case.ACCUSATIVE
            return Prepositional("to", noun.place.whereto, case, nominal)
        return Prepositional(noun.place.english, noun.place.where, Case.DATIVE, nominal)

    def town(self, land: bool, direction: bool) -> Prepositional:
        """Draw a town or a country as a place or a direction."""
        name = self.random.choice(TOWNS + LANDS if land else TOWNS)
        return Prepositional("to" if direction else "in", "nach" if direction else "in", Case.DATIVE, name)
