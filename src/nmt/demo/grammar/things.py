"""Choose things, places and times that make sense in their place."""

from nmt.demo.grammar import lexicon
from nmt.demo.grammar.choosing import UNIQUE, Chooser, is_woman, possessive
from nmt.demo.grammar.clauses import Part, Role
from nmt.demo.grammar.determiners import (
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
from nmt.demo.grammar.features import Case
from nmt.demo.grammar.lexicon import Adjective, Adverb, Noun, Verb
from nmt.demo.grammar.modes import ClauseSpec, Mode
from nmt.demo.grammar.phrases import Fixed, Name, Nominal, NounPhrase, Prepositional, owned

SMALL_NUMERALS = NUMERALS[:4]
AGO = (("days", "Tagen"), ("weeks", "Wochen"), ("months", "Monaten"))
TOWNS = tuple(Name(town.english, town.german) for town in lexicon.TOWN)
TOWNS_AND_LANDS = (*TOWNS, *(Name(land.english, land.german) for land in lexicon.LAND))
POSSESSABLE, WITHOUT_ARTICLE, COUNTABLE = (
    frozenset(lexicon.GROUPS[name]) for name in ("possessable", "bare", "countable")
)


class Supplier(Chooser):
    """Draws things, places and time adverbials."""

    def own_clothing(self, subject: Nominal, negated: bool, worn: bool) -> NounPhrase:
        """Draw a piece of clothing that suits the subject."""
        excluded = (() if is_woman(subject) else ("womens",)) + (() if worn else ("headwear",))
        noun = self.noun(("clothing",), excluded)
        several = subject.agreement.plural
        plural = several or "pair" in noun.classes
        owner = possessive(subject)
        determiner = owner if owner and self.chance(0.6) else THE
        if not several and self.chance(0.5):
            determiner = _indefinite(plural, negated)
        return NounPhrase(determiner, noun, plural, self.adjective(noun, 0.4))

    def generic(self, classes: tuple[str, ...], excluded: tuple[str, ...] = ()) -> NounPhrase:
        """Draw things of a kind, such as books or cold milk."""
        noun = self.noun(classes, excluded)
        if "meal" in noun.classes:
            return NounPhrase(MEAL, noun)
        article = noun.classes & UNIQUE and not noun.classes & WITHOUT_ARTICLE
        return NounPhrase(THE if article else BARE, noun, not noun.mass and not article, self.adjective(noun, 0.25))

    def thing(
        self, classes: tuple[str, ...], owner: Determiner | None, negated: bool, one: bool, excluded: tuple[str, ...]
    ) -> Nominal:
        """Draw an object that is not a person; it is not several things if it must be `one`."""
        if "town" in classes and self.chance(0.5):
            return self.any_of(TOWNS)
        noun = self.noun(tuple(name for name in classes if name not in ("town", "land")), excluded)
        adjective = self.adjective(noun, 0.38)
        if noun.classes & WITHOUT_ARTICLE:
            return NounPhrase(NOT_A if negated and noun.classes & {"time", "aid", "money"} else BARE, noun)
        if "meal" in noun.classes:
            return NounPhrase(MEAL, noun)
        if noun.classes & UNIQUE:
            determiner = THE if noun.mass else self.any_of((THE, THE, _indefinite(False, negated)))
            return NounPhrase(determiner, noun, False, adjective)
        if noun.mass:
            return NounPhrase(self.any_of((THE, _indefinite(True, negated))), noun, False, adjective)
        return self._counted(noun, adjective, owner if noun.classes & POSSESSABLE else None, negated, one)

    def _counted(
        self, noun: Noun, adjective: Adjective | None, owner: Determiner | None, negated: bool, one: bool
    ) -> Nominal:
        pair = "pair" in noun.classes
        weights = {"the": 34, "a": 30, "this": 5, "owner": 26, "kin": 5, "name": 5, "plural": 6, "counted": 11}
        barred = [*([] if owner else ["owner", "kin", "name"]), *(["plural", "counted"] if one else [])]
        if negated or pair:
            barred.append("counted")
        shape = self.one_of({name: 0 if name in barred else weight for name, weight in weights.items()})
        plural = pair or shape in ("plural", "counted")
        if shape == "name":
            return owned(self.name(), noun, plural, adjective)
        if shape == "kin":
            return NounPhrase(THE, noun, plural, adjective, possessor=self.relation(self.any_of(POSSESSIVES)))
        if shape == "owner":
            plural |= not one and owner in (OUR, THEIR) and "own" not in noun.classes
        known = plural and not pair and self.chance(0.4)
        numbers = NUMERALS if noun.classes & COUNTABLE else SMALL_NUMERALS
        determiner = {
            "the": THE,
            "this": THIS,
            "owner": owner or THE,
            "counted": self.any_of((*numbers, MANY, SOME, MANY, SOME)),
            "plural": THE if known else _indefinite(True, negated),
            "a": _indefinite(plural, negated),
        }[shape]
        return NounPhrase(determiner, noun, plural, adjective)

    def place(
        self, classes: tuple[str, ...], owner: Determiner | None, direction: bool, within: str = ""
    ) -> Prepositional:
        """Draw a place or a direction."""
        if "town" in classes and self.chance(0.4 if len(classes) < 3 else 0.5):
            return self.town("land" in classes, direction)
        pool = [noun for noun in lexicon.nouns_of(classes) if noun.place and noun.english not in self.used]
        pool = [noun for noun in pool if not within or within in noun.classes]
        if not pool:
            return self.town("land" in classes, direction)
        noun = self.any_of(pool)
        self.used.add(noun.english)
        assert noun.place is not None
        determiner = owner if "own" in noun.classes and owner and self.chance(0.5) else THE
        nominal = NounPhrase(determiner, noun, False, self.adjective(noun, 0.25))
        if direction:
            case = Case.DATIVE if noun.place.whereto == "zu" else Case.ACCUSATIVE
            return Prepositional("to", noun.place.whereto, case, nominal)
        return Prepositional(noun.place.english, noun.place.where, Case.DATIVE, nominal)

    def town(self, land: bool, direction: bool) -> Prepositional:
        """Draw a town or a country as a place or a direction."""
        name = self.any_of(TOWNS_AND_LANDS if land else TOWNS)
        return Prepositional("to" if direction else "in", "nach" if direction else "in", Case.DATIVE, name)

    def time(self, mode: Mode, verb: Verb, spec: ClauseSpec, front_only: bool) -> Part | None:
        """Draw a time adverbial, or none."""
        timed = "timed" in verb.flags and mode in (Mode.PAST, Mode.FUTURE, Mode.HABIT)
        if not timed and not (mode.time_use and spec.time and self.chance(mode.time_chance)):
            return None
        personal = any(name in complement.classes for complement in verb.complements for name in ("person", "family"))
        if mode is Mode.HABIT and (personal or self.chance(0.65)) and not front_only:
            return adverb_part(Role.FREQUENCY, self.any_of(lexicon.FREQUENCY))
        if "clock" in verb.flags and self.chance(0.5):
            number = self.any_of(lexicon.NUMBER)
            return Part(Role.TIME, Fixed(f"at {number.english} o'clock", f"um {number.german} Uhr"))
        return self.date(mode.time_use, verb)

    def date(self, use: str, verb: Verb) -> Part:
        """Draw a time adverbial for the past, the future or a habit."""
        slow, big = "slow" in verb.flags, bool(verb.flags & {"tour", "cash", "slow"})
        if use == "past" and not slow and self.chance(0.1):
            number, (unit, einheit) = self.any_of(lexicon.NUMBER[:6]), self.any_of(AGO)
            ago = Fixed(f"{number.english} {unit} ago", f"vor {number.german} {einheit}", german_order=(2, 0, 1))
            return Part(Role.TIME, ago)
        fitting = [each for each in lexicon.TIME if use in each.use and (big if "slow" in each.use else not slow)]
        return adverb_part(Role.TIME, self.any_of(fitting))


def adverb_part(role: Role, adverb: Adverb) -> Part:
    """Return an adverb of the lexicon in a role."""
    return Part(role, Fixed(adverb.english, adverb.german))


def _indefinite(plural: bool, negated: bool) -> Determiner:
    return NOT_A if negated else BARE if plural else A
