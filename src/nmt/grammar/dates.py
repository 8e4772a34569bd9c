"""Saying when, and how often."""

from nmt.grammar.clauses import Part, Role
from nmt.grammar.lexicon import modifiers
from nmt.grammar.lexicon.entries import Adverb, Verb
from nmt.grammar.phrases import Fixed
from nmt.grammar.things import Supplier
from nmt.grammar.wishes import FUTURE, HABIT, PAST, TIME_CHANCES, TIME_USES, Wish

CLOCK = modifiers.NUMBER


class Calendar(Supplier):
    """Draws time adverbials."""

    def time(self, telling: str, verb: Verb, wish: Wish, front_only: bool) -> Part | None:
        """When, or how often."""
        timed = "timed" in verb.flags and telling in (PAST, FUTURE, HABIT)
        if not timed and (telling not in TIME_USES or not wish.time or not self.chance(TIME_CHANCES[telling])):
            return None
        personal = any(name in complement.classes for complement in verb.complements for name in ("person", "family"))
        if telling == HABIT and (personal or self.chance(0.65)) and not front_only:
            adverb = self.random.choice(modifiers.FREQUENCY)
            return Part(Role.FREQUENCY, Fixed(adverb.english, adverb.german))
        if "clock" in verb.flags and self.chance(0.5):
            return Part(Role.TIME, self.clock())
        return Part(Role.TIME, self.date(TIME_USES[telling], verb))

    def date(self, use: str, verb: Verb) -> Fixed:
        """A time adverbial for past, future or habit."""
        slow, big = "slow" in verb.flags, bool(verb.flags & {"tour", "cash", "slow"})
        if use == "past" and not slow and self.chance(0.1):
            return self.ago()
        fitting = [adverb for adverb in times(use) if (big if "slow" in adverb.uses else not slow)]
        adverb = self.random.choice(fitting)
        return Fixed(adverb.english, adverb.german)

    def ago(self) -> Fixed:
        """Three weeks ago."""
        number = self.random.choice(modifiers.NUMBER[:6])
        unit, einheit = self.random.choice((("days", "Tagen"), ("weeks", "Wochen"), ("months", "Monaten")))
        return Fixed(f"{number.english} {unit} ago", f"vor {number.german} {einheit}")

    def clock(self) -> Fixed:
        """At eight o'clock."""
        number = self.random.choice(CLOCK)
        return Fixed(f"at {number.english} o'clock", f"um {number.german} Uhr")

    def year(self) -> Fixed:
        """In 1987."""
        year = str(self.random.randint(1950, 2019))
        return Fixed(f"in {year}", f"im Jahr {year}")


def times(use: str) -> tuple[Adverb, ...]:
    """The time adverbials of a use."""
    return tuple(adverb for adverb in modifiers.TIME if use in adverb.uses)
