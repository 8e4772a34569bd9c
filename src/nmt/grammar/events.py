"""Building clauses: a verb with a tense it can bear, objects it can have, and adverbials that go with both."""

from collections.abc import Iterable

from nmt.grammar.choosing import is_each, is_young, kin_owner, possessive
from nmt.grammar.clauses import Clause, Part, Role
from nmt.grammar.dates import Calendar
from nmt.grammar.determiners import THE
from nmt.grammar.features import Case, Gender, Tense
from nmt.grammar.lexicon import modifiers, verbs
from nmt.grammar.lexicon.entries import Complement, Verb
from nmt.grammar.phrases import Fixed, Nominal, NounPhrase, Owned, Prepositional
from nmt.grammar.pronouns import Asked
from nmt.grammar.verbgroup import CAN, LIKE_TO, SHOULD, Modal, VerbGroup
from nmt.grammar.wishes import (
    ANY,
    FUTURE,
    HABIT,
    LIKING,
    MODAL,
    MODALS,
    NOW,
    PAST,
    PAST_MODAL,
    PAST_MODALS,
    PERFECT,
    PLUPERFECT,
    TENSES,
    Wish,
)

STATIVE = tuple(verb for verb in verbs.ACTIVITIES if "state" in verb.flags)
EVENTFUL = tuple(verb for verb in verbs.ACTIVITIES if not verb.flags & {"state", "posture"})
POSTURES = tuple(verb for verb in verbs.ACTIVITIES if "posture" in verb.flags)
TRIES = 20


class Narrator(Calendar):
    """Builds clauses about events."""

    def event(self, wish: Wish) -> Clause:
        """Someone does something."""
        telling = self.one_of({tense: ANY.get(tense, 10.0) for tense in wish.tenses})
        verb = wish.verb or self.suitable(wish.subject, self.barred(telling, wish), wish.scene)
        subject = wish.subject or self.doer(verb, wish, telling)
        return self.clause(wish, subject, verb, telling)

    def barred(self, telling: str, wish: Wish) -> set[str]:
        """Flags of the verbs that cannot be told in this way."""
        barred: set[str] = set()
        if wish.planned or telling in (FUTURE, MODAL, PAST_MODAL, LIKING):
            barred.add("chance")
        if telling == LIKING:
            barred.add("stiff")
        if telling in (NOW, LIKING):
            barred |= {"event", "chance", "once"}
        if telling in (MODAL, PAST_MODAL, LIKING):
            barred.add("thing")
        if telling in (HABIT, LIKING):
            barred |= {"once", "slow"}
        return barred

    def doer(self, verb: Verb, wish: Wish, telling: str) -> Nominal:
        """A subject; one neither tells people what they did nor asks them what one did oneself."""
        for _ in range(TRIES):
            subject = self.subject(verb.subjects)
            told_or_asked = subject.agreement.person == (1 if wish.question else 2) and subject.light
            if suits(subject, verb) and (telling == MODAL or not told_or_asked):
                return subject
        return self.subject(verb.subjects, full=True)

    def suitable(self, subject: Nominal | None, barred: Iterable[str] = ("chance", "thing"), scene: str = "") -> Verb:
        """An eventful verb, without these flags, that the subject can be the subject of."""
        pool = [
            verb
            for verb in EVENTFUL
            if verb.flags.isdisjoint(barred)
            and (not scene or scene in verb.flags)
            and suits(subject, verb)
            and verb.name not in self.used
        ]
        verb = self.random.choice(pool)
        self.used.add(verb.name)
        return verb

    def clause(self, wish: Wish, subject: Nominal, verb: Verb, telling: str) -> Clause:
        """A clause of this subject and verb, told in this way."""
        self.used.add(verb.name)
        negated = (
            telling not in (NOW, LIKING, PLUPERFECT, HABIT) and not is_each(subject) and self.chance(wish.negation)
        )
        telling = self.unambiguous(telling, subject, verb, wish.question or negated)
        group = VerbGroup(verb, TENSES.get(telling, Tense.PRESENT), self.modal(telling, wish.question), negated)
        parts = [
            part
            for complement in verb.complements
            for part in self.complement(complement, verb, subject, group, telling)
        ]
        front: list[Part] = []
        extra = [] if negated or telling in (NOW, LIKING) else self.adverbials(group, parts, wish, subject)
        relative = not extra and self.chance(wish.relatives)
        time = self.time(telling, verb, wish, relative)
        if time and (relative or self.chance(wish.front)) and time.role is Role.TIME and not wish.question:
            front.append(time)
        elif time:
            extra.append(time)
        elif not wish.question and wish.front and telling in (PAST, FUTURE) and self.chance(0.1):
            front.append(self.comment(verb, negated))
        extra.extend(self.focus(telling, negated, verb, [*parts, *extra]))
        if relative and not any(part.role in (Role.NOW, Role.YET) for part in extra):
            parts = self.with_relative(parts)
        return Clause(subject, group, (*parts, *extra), front[0] if front else None)

    def comment(self, verb: Verb, negated: bool) -> Part:
        """What one thinks of it: unfortunately, of course."""
        lucky = "bad" not in verb.flags and not negated
        sad = "good" not in verb.flags
        open_ = [
            word for word in modifiers.COMMENT if {"lucky": lucky, "sad": sad}.get(next(iter(word.uses), ""), True)
        ]
        comment = self.random.choice(open_)
        return Part(Role.COMMENT, Fixed(comment.english, comment.german))

    def unambiguous(self, telling: str, subject: Nominal, verb: Verb, supported: bool) -> str:
        """Another tense where English would not tell present from past: they read."""
        base, past, _ = verb.english
        same = base == past and not supported and not subject.agreement.third_singular
        return self.random.choice((FUTURE, MODAL)) if same and telling in (PAST, HABIT) else telling

    def modal(self, telling: str, question: bool = False) -> Modal | None:
        """The modal of a way of telling."""
        if telling == LIKING:
            return LIKE_TO
        choices = {MODAL: MODALS, PAST_MODAL: PAST_MODALS}.get(telling)
        return (
            self.random.choice([modal for modal in choices if not question or modal is not SHOULD]) if choices else None
        )

    def complement(
        self, complement: Complement, verb: Verb, subject: Nominal, group: VerbGroup, telling: str
    ) -> list[Part]:
        """The parts that fill one place in the verb's frame."""
        owner = possessive(subject)
        generic = telling in (HABIT, LIKING) or "presentonly" in verb.flags
        match complement.kind:
            case "acc":
                return [Part(Role.OBJECT, self.object(complement.classes, subject, group.negated, verb, generic))]
            case "dat":
                role = Role.SHIFTED if "shift" in verb.flags else Role.RECIPIENT
                return [Part(role, self.person(subject, generic), Case.DATIVE)]
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

    def object(self, classes: tuple[str, ...], subject: Nominal, negated: bool, verb: Verb, generic: bool) -> Nominal:
        """An object of these classes."""
        if "body" in verb.flags:
            return self.own_clothing(subject, negated, "state" in verb.flags)
        persons = [name for name in classes if name in ("person", "family")]
        things = tuple(name for name in classes if name not in ("person", "family"))
        if persons and (not things or self.chance(0.4)):
            return (
                self.person(subject, generic, "family" in persons)
                if "person" in persons
                else self.relation(kin_owner(subject))
            )
        woman = subject.agreement.gender is Gender.FEMININE and not subject.agreement.plural
        apart = (("alcohol",) if is_young(subject) else ()) + (() if woman else ("womens",))
        owner = possessive(subject)
        if "make" in verb.flags:
            owner = None
            self.used.add("old")
        if generic and "one" not in verb.flags:
            return self.generic(tuple(name for name in things if name != "town"), apart)
        return self.thing(things, owner, negated, "one" in verb.flags, apart)

    def adverbials(self, group: VerbGroup, parts: list[Part], wish: Wish, subject: Nominal) -> list[Part]:
        """Manner, company and place, where the verb allows them."""
        extra: list[Part] = []
        if not wish.adverbials:
            return extra
        verb = group.verb
        known = all(getattr(part.phrase, "definite", True) for part in parts)
        judged = group.tense is not Tense.FUTURE and group.modal in (None, CAN)
        manners = [manner for manner in verb.manners if judged or manner != "well"]
        if manners and known and self.chance(0.25):
            adverb = modifiers.MANNER[self.random.choice(manners)]
            extra.append(Part(Role.MANNER, Fixed(adverb.english, adverb.german)))
        if len(extra) < wish.adverbials and "with" in verb.flags and self.chance(0.35):
            extra.append(Part(Role.COMPANION, Prepositional("with", "mit", Case.DATIVE, self.person(subject, True))))
        elif len(extra) < wish.adverbials and "for" in verb.flags and self.chance(0.35):
            extra.append(Part(Role.COMPANION, Prepositional("for", "für", Case.ACCUSATIVE, self.person(subject, True))))
        if len(extra) < wish.adverbials and verb.places and self.chance(0.55):
            extra.append(Part(Role.PLACE, self.place(verb.places, possessive(subject), False)))
        return extra

    def focus(self, telling: str, negated: bool, verb: Verb, parts: list[Part]) -> list[Part]:
        """Right now; already; not yet."""
        if telling == NOW:
            return [Part(Role.NOW, Fixed("right now", "gerade"))]
        ends = verb.complements or "clock" in verb.flags
        if telling != PERFECT or "chance" in verb.flags or not ends:
            return []
        if negated:
            return [Part(Role.YET, Fixed("yet", "noch"))]
        known = all(getattr(part.phrase, "definite", True) and part.role is not Role.MANNER for part in parts)
        return [Part(Role.ALREADY, Fixed("already", "schon"))] if known and self.chance(0.6) else []

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
            and "body" not in verb.flags
            and verb.name not in self.used
            and not phrase.noun.classes.isdisjoint(verb.complements[0].classes)
        ]
        if not takers:
            return None
        verb = self.random.choice(takers)
        human = bool(phrase.noun.classes & {"person", "family"})
        subject = self.doer(verb, Wish(), PAST)
        telling = self.unambiguous(self.random.choice((PAST, PAST, PERFECT)), subject, verb, False)
        group = VerbGroup(verb, TENSES.get(telling, Tense.PRESENT), self.modal(telling))
        return Clause(subject, group, (), Part(Role.OBJECT, Asked(phrase.agreement, human, True)))

    def subject_relative(self, phrase: NounPhrase) -> Clause:
        """Who has bought something: a relative clause in which the person is the subject."""
        verb = self.suitable(phrase)
        wish = Wish(adverbials=1, negation=0, front=0, relatives=0)
        told = self.clause(wish, phrase, verb, self.one_of({PAST: 3, PERFECT: 1}))
        return Clause(Asked(phrase.agreement, True, True), told.group, told.parts)


def suits(subject: Nominal | None, verb: Verb) -> bool:
    """Whether the subject can do this; nobody in particular stands for a person."""
    if not isinstance(subject, NounPhrase | Owned):
        return "person" in verb.subjects or subject is None
    if "adult" in verb.flags and "young" in subject.noun.classes:
        return False
    return not subject.noun.classes.isdisjoint(verb.subjects)
