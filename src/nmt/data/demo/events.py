"""Building clauses: a verb with a tense it can bear, objects it can have, and adverbials that go with both."""

from dataclasses import dataclass

from nmt.data.demo.choosing import Chooser, possessive
from nmt.data.demo.clauses import Clause, Part, Role
from nmt.data.demo.features import Case, Tense
from nmt.data.demo.lexicon import modifiers, verbs
from nmt.data.demo.lexicon.entries import Adverb, Complement, Verb
from nmt.data.demo.phrases import (
    BARE,
    THE,
    Asked,
    Determiner,
    Fixed,
    Name,
    Nominal,
    NounPhrase,
    Owned,
    Prepositional,
)
from nmt.data.demo.verbgroup import CAN, HAVE_TO, LIKE_TO, MAY, SHOULD, WANT_TO, WOULD_LIKE, Modal, VerbGroup

PAST, PERFECT, PLUPERFECT = "past", "perfect", "pluperfect"
FUTURE, MODAL, PAST_MODAL = "future", "modal", "past modal"
HABIT, NOW, LIKING, STATE = "habit", "now", "liking", "state"
ANY = {PAST: 34.0, PERFECT: 12.0, FUTURE: 13.0, MODAL: 17.0, PAST_MODAL: 8.0, HABIT: 13.0, NOW: 9.0, LIKING: 5.0}
TENSES = {
    PAST: Tense.PAST,
    PERFECT: Tense.PERFECT,
    PLUPERFECT: Tense.PLUPERFECT,
    FUTURE: Tense.FUTURE,
    PAST_MODAL: Tense.PAST,
    NOW: Tense.PROGRESSIVE,
}
MODALS = (CAN, HAVE_TO, WANT_TO, SHOULD, MAY, WOULD_LIKE)
PAST_MODALS = (CAN, HAVE_TO, WANT_TO, MAY)
TIME_USES = {PAST: "past", PAST_MODAL: "past", FUTURE: "future", MODAL: "future", HABIT: "habit"}
TIME_CHANCES = {PAST: 0.6, PAST_MODAL: 0.35, FUTURE: 0.6, MODAL: 0.3, HABIT: 1.0}
STATIVE = tuple(verb for verb in verbs.ACTIVITIES if "state" in verb.flags)
EVENTFUL = tuple(verb for verb in verbs.ACTIVITIES if not verb.flags & {"state", "posture"})
POSTURES = tuple(verb for verb in verbs.ACTIVITIES if "posture" in verb.flags)
CLOCK = modifiers.NUMBER


@dataclass(frozen=True, slots=True)
class Wish:
    """What a clause should be like."""

    tenses: tuple[str, ...] = tuple(ANY)
    subject: Nominal | None = None
    verb: Verb | None = None
    question: bool = False
    adverbials: int = 2
    negation: float = 0.12
    front: float = 0.3
    relatives: float = 0.12
    time: bool = True


class Narrator(Chooser):
    """Builds clauses about events."""

    def event(self, wish: Wish) -> Clause:
        """Someone does something."""
        verb = wish.verb or self.suitable(wish.subject)
        subject = wish.subject or self.subject(verb.subjects)
        manner = self.pick({tense: ANY.get(tense, 10.0) for tense in wish.tenses})
        return self.clause(wish, subject, verb, manner)

    def suitable(self, subject: Nominal | None) -> Verb:
        """An eventful verb that the subject can be the subject of."""
        if subject is None:
            return self.random.choice(EVENTFUL)
        while True:
            verb = self.random.choice(EVENTFUL)
            if suits(subject, verb):
                return verb

    def clause(self, wish: Wish, subject: Nominal, verb: Verb, telling: str) -> Clause:
        """A clause of this subject and verb, told in this way."""
        negated = telling not in (NOW, LIKING, PLUPERFECT) and self.chance(wish.negation)
        telling = self.unambiguous(telling, subject, verb, wish.question or negated)
        if "event" in verb.flags and telling in (NOW, LIKING):
            telling = PAST
        group = VerbGroup(verb, TENSES.get(telling, Tense.PRESENT), self.modal(telling), negated)
        owner = possessive(subject)
        parts = [part for complement in verb.complements for part in self.complement(complement, verb, subject, group)]
        front: list[Part] = []
        extra = self.adverbials(verb, owner, negated, wish, subject)
        relative = not extra and self.chance(wish.relatives)
        time = self.time(telling, verb, wish, relative)
        if time and (relative or self.chance(wish.front)) and time.role is Role.TIME and not wish.question:
            front.append(time)
        elif time:
            extra.append(time)
        elif not wish.question and wish.front and self.chance(0.06):
            comment = self.random.choice(modifiers.COMMENT)
            front.append(Part(Role.COMMENT, Fixed(comment.english, comment.german)))
        extra.extend(self.focus(telling, negated))
        if relative and not any(part.role in (Role.NOW, Role.YET) for part in extra):
            parts = self.with_relative(parts)
        return Clause(subject, group, (*parts, *extra), front[0] if front else None)

    def unambiguous(self, telling: str, subject: Nominal, verb: Verb, supported: bool) -> str:
        """Another tense where English would not tell present from past: they read."""
        base, past, _ = verb.english
        same = base == past and not supported and not subject.agreement.third_singular
        return self.random.choice((FUTURE, MODAL)) if same and telling in (PAST, HABIT) else telling

    def modal(self, telling: str) -> Modal | None:
        """The modal of a way of telling."""
        if telling == LIKING:
            return LIKE_TO
        choices = {MODAL: MODALS, PAST_MODAL: PAST_MODALS}.get(telling)
        return self.random.choice(choices) if choices else None

    def complement(self, complement: Complement, verb: Verb, subject: Nominal, group: VerbGroup) -> list[Part]:
        """The parts that fill one place in the verb's frame."""
        owner = possessive(subject)
        match complement.kind:
            case "acc":
                liking = group.modal is LIKE_TO
                nominal = self.object(complement.classes, subject, group.negated, verb, liking)
                return [Part(Role.OBJECT, nominal)]
            case "dat":
                role = Role.SHIFTED if "shift" in verb.flags else Role.RECIPIENT
                return [Part(role, self.person(owner, subject), Case.DATIVE)]
            case "to":
                return [Part(Role.DIRECTION, self.place(complement.classes, owner, True))]
            case "at":
                return [Part(Role.DIRECTION, self.place(complement.classes, owner, False))]
            case "home":
                return [Part(Role.DIRECTION, Fixed("home", "nach Hause"))]
            case _:
                nominal = self.object(complement.classes, subject, False, verb, False)
                phrase = Prepositional(complement.english, complement.german, complement.case, nominal)
                return [Part(Role.OBLIQUE, phrase)]

    def object(self, classes: tuple[str, ...], subject: Nominal, negated: bool, verb: Verb, liking: bool) -> Nominal:
        """An object of these classes."""
        owner = possessive(subject)
        persons = [name for name in classes if name in ("person", "family")]
        if persons and self.chance(0.9 if len(persons) == len(classes) else 0.4):
            return self.person(owner, subject)
        things = tuple(name for name in classes if name not in ("person", "family")) or classes
        if "own" in things or "family" in things:
            return self.relation(owner)
        if liking:
            noun = self.noun(tuple(name for name in things if name != "town"))
            return NounPhrase(BARE, noun, not noun.mass, self.adjective(noun, 0.25))
        return self.thing(things, owner, negated, bool(verb.flags & {"one"}))

    def adverbials(
        self, verb: Verb, owner: Determiner | None, negated: bool, wish: Wish, subject: Nominal
    ) -> list[Part]:
        """Manner, company and place, where the verb allows them."""
        parts: list[Part] = []
        if negated or not wish.adverbials:
            return parts
        if verb.manners and self.chance(0.22):
            adverb = modifiers.MANNER[self.random.choice(verb.manners)]
            parts.append(Part(Role.MANNER, Fixed(adverb.english, adverb.german)))
        if len(parts) < wish.adverbials and "with" in verb.flags and self.chance(0.25):
            parts.append(Part(Role.COMPANION, Prepositional("with", "mit", Case.DATIVE, self.person(owner, subject))))
        elif len(parts) < wish.adverbials and "for" in verb.flags and self.chance(0.25):
            parts.append(
                Part(Role.COMPANION, Prepositional("for", "für", Case.ACCUSATIVE, self.person(owner, subject)))
            )
        if len(parts) < wish.adverbials and verb.places and self.chance(0.4):
            parts.append(Part(Role.PLACE, self.place(verb.places, owner, False)))
        return parts

    def time(self, telling: str, verb: Verb, wish: Wish, front_only: bool) -> Part | None:
        """When, or how often."""
        if telling not in TIME_USES or not wish.time or not self.chance(TIME_CHANCES[telling]):
            return None
        if telling == HABIT and self.chance(0.65) and not front_only:
            adverb = self.random.choice(modifiers.FREQUENCY)
            return Part(Role.FREQUENCY, Fixed(adverb.english, adverb.german))
        if "clock" in verb.flags and self.chance(0.5):
            return Part(Role.TIME, self.clock())
        return Part(Role.TIME, self.date(TIME_USES[telling]))

    def date(self, use: str) -> Fixed:
        """A time adverbial for past, future or habit."""
        if use == "past" and self.chance(0.1):
            return self.ago()
        adverb = self.random.choice(times(use))
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

    def focus(self, telling: str, negated: bool) -> list[Part]:
        """Right now; already; not yet."""
        if telling == NOW:
            return [Part(Role.NOW, Fixed("right now", "gerade"))]
        if telling == PERFECT and negated:
            return [Part(Role.YET, Fixed("yet", "noch"))]
        if telling == PERFECT and self.chance(0.5):
            return [Part(Role.ALREADY, Fixed("already", "schon"))]
        return []

    def with_relative(self, parts: list[Part]) -> list[Part]:
        """Hang a relative clause on the last part, where that is a noun phrase that can bear one."""
        if not parts or parts[-1].role is not Role.OBJECT:
            return parts
        phrase = parts[-1].phrase
        if not isinstance(phrase, NounPhrase) or phrase.possessor or phrase.noun.mass or phrase.determiner is not THE:
            return parts
        relative = self.object_relative(phrase)
        if relative is None:
            return parts
        linked = NounPhrase(phrase.determiner, phrase.noun, phrase.plural, phrase.adjective, None, relative)
        return [*parts[:-1], Part(Role.OBJECT, linked)]

    def object_relative(self, phrase: NounPhrase) -> Clause | None:
        """That someone has bought: a relative clause in which the noun is the object."""
        takers = [
            verb
            for verb in EVENTFUL
            if len(verb.complements) == 1
            and verb.complements[0].kind == "acc"
            and "person" in verb.subjects
            and not phrase.noun.classes.isdisjoint(verb.complements[0].classes)
        ]
        if not takers:
            return None
        verb = self.random.choice(takers)
        human = bool(phrase.noun.classes & {"person", "family"})
        subject = self.subject(verb.subjects, full=self.chance(0.6))
        telling = self.unambiguous(self.random.choice((PAST, PAST, PERFECT)), subject, verb, False)
        group = VerbGroup(verb, TENSES.get(telling, Tense.PRESENT), self.modal(telling))
        return Clause(subject, group, (), Part(Role.OBJECT, Asked(phrase.agreement, human, True)))

    def subject_relative(self, phrase: NounPhrase) -> Clause:
        """Who has bought something: a relative clause in which the person is the subject."""
        verb = self.suitable(phrase)
        wish = Wish((PAST, PAST_MODAL), adverbials=1, negation=0.05, front=0, relatives=0)
        told = self.clause(wish, phrase, verb, self.pick({PAST: 3, PERFECT: 1, MODAL: 1}))
        return Clause(Asked(phrase.agreement, True, True), told.group, told.parts)


def times(use: str) -> tuple[Adverb, ...]:
    """The time adverbials of a use."""
    return tuple(adverb for adverb in modifiers.TIME if use in adverb.uses)


def suits(subject: Nominal, verb: Verb) -> bool:
    """Whether the subject can do this."""
    if isinstance(subject, NounPhrase | Owned):
        return not subject.noun.classes.isdisjoint(verb.subjects)
    return "person" in verb.subjects or (isinstance(subject, Name) and "person" in verb.subjects)
