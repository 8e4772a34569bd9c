"""Choose adverbials of time and frequency."""

from nmt.features.demo.grammar import lexicon
from nmt.features.demo.grammar.clause_spec import FUTURE, HABIT, PAST, TIME_CHANCES, TIME_USES, ClauseSpec
from nmt.features.demo.grammar.clauses import Part, Role
from nmt.features.demo.grammar.lexicon import Adverb, Verb
from nmt.features.demo.grammar.phrases import Fixed
from nmt.features.demo.grammar.things import Supplier

CLOCK = lexicon.NUMBER


class Calendar(Supplier):
    """Draws time adverbials."""

    def time(self, mode: str, verb: Verb, spec: ClauseSpec, front_only: bool) -> Part | None:
        """Draw a time adverbial, or none."""
        timed = "timed" in verb.flags and mode in (PAST, FUTURE, HABIT)
        if not timed and (mode not in TIME_USES or not spec.time or not self.chance(TIME_CHANCES[mode])):
            return None
        personal = any(name in complement.classes for complement in verb.complements for name in ("person", "family"))
        if mode == HABIT and (personal or self.chance(0.65)) and not front_only:
            adverb = self.random.choice(lexicon.FREQUENCY)
            return Part(Role.FREQUENCY, Fixed(adverb.english, adverb.german))
        if "clock" in verb.flags and self.chance(0.5):
            return Part(Role.TIME, self.clock())
        return Part(Role.TIME, self.date(TIME_USES[mode], verb))

    def date(self, use: str, verb: Verb) -> Fixed:
        """Draw a time adverbial for the past, the future or a habit."""
        slow, big = "slow" in verb.flags, bool(verb.flags & {"tour", "cash", "slow"})
        if use == "past" and not slow and self.chance(0.1):
            return self.ago()
        fitting = [adverb for adverb in times(use) if (big if "slow" in adverb.use else not slow)]
        adverb = self.random.choice(fitting)
        return Fixed(adverb.english, adverb.german)

    def ago(self) -> Fixed:
        """Draw an adverbial such as: three weeks ago."""
        number = self.random.choice(lexicon.NUMBER[:6])
        unit, einheit = self.random.choice((("days", "Tagen"), ("weeks", "Wochen"), ("months", "Monaten")))
        return Fixed(f"{number.english} {unit} ago", f"vor {number.german} {einheit}", german_order=(2, 0, 1))

    def clock(self) -> Fixed:
        """Draw an adverbial such as: at eight o'clock."""
        number = self.random.choice(CLOCK)
        return Fixed(f"at {number.english} o'clock", f"um {number.german} Uhr")

    def year(self) -> Fixed:
        """Draw an adverbial such as: in 1987."""
        year = str(self.random.randint(1950, 2019))
        return Fixed(f"in {year}", f"im Jahr {year}")


def times(use: str) -> tuple[Adverb, ...]:
    """Return the time adverbials of a use."""
    return tuple(adverb for adverb in lexicon.TIME if use in adverb.use)
