"""Build clauses about events: a verb with a possible tense, its objects, and adverbials that suit both."""

from collections.abc import Iterable

from nmt.features.demo.grammar import lexicon
from nmt.features.demo.grammar.choosing import is_each, is_young, kin_owner, possessive
from nmt.features.demo.grammar.clause_spec import (
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
    ClauseSpec,
)
from nmt.features.demo.grammar.clauses import Clause, Part, Role
from nmt.features.demo.grammar.dates import Calendar
from nmt.features.demo.grammar.determiners import THE
from nmt.features.demo.grammar.features import Case, Gender, Tense
from nmt.features.demo.grammar.lexicon import Complement, Verb
from nmt.features.demo.grammar.phrases import Asked, Fixed, Nominal, NounPhrase, Prepositional
from nmt.features.demo.grammar.verbgroup import CAN, LIKE_TO, SHOULD, Modal, VerbGroup

STATIVE = tuple(verb for verb in lexicon.ACTIVITIES if "state" in verb.flags)
EVENTFUL = tuple(verb for verb in lexicon.ACTIVITIES if not verb.flags & {"state", "posture"})
POSTURES = tuple(verb for verb in lexicon.ACTIVITIES if "posture" in verb.flags)
TRIES = 20


class Narrator(Calendar):
    """Builds clauses about events."""

    def event(self, spec: ClauseSpec) -> Clause:
        """Build a clause: someone does something."""
        mode = self.one_of({tense: ANY.get(tense, 10.0) for tense in spec.tenses})
        verb = spec.verb or self.suitable(spec.subject, self.barred(mode, spec), spec.scene)
        subject = spec.subject or self.doer(verb, spec, mode)
        return self.clause(spec, subject, verb, mode)

    def barred(self, mode: str, spec: ClauseSpec) -> set[str]:
        """Return the flags of the verbs that are impossible in this mode."""
        barred: set[str] = set()
        if spec.planned or mode in (FUTURE, MODAL, PAST_MODAL, LIKING):
            barred.add("chance")
        if mode == LIKING:
            barred.add("stiff")
        if mode in (NOW, LIKING):
            barred |= {"event", "chance", "once"}
        if mode in (MODAL, PAST_MODAL, LIKING):
            barred.add("thing")
        if mode in (HABIT, LIKING):
            barred |= {"once", "slow"}
        return barred

    def doer(self, verb: Verb, spec: ClauseSpec, mode: str) -> Nominal:
        """Draw a subject; statements about `you` and questions about `I` are avoided."""
        for _ in range(TRIES):
            subject = self.subject(verb.subjects)
            told_or_asked = subject.agreement.person == (1 if spec.question else 2) and subject.light
            if suits(subject, verb) and (mode == MODAL or not told_or_asked):
                return subject
        return self.subject(verb.subjects, full=True)

    def suitable(self, subject: Nominal | None, barred: Iterable[str] = ("chance", "thing"), scene: str = "") -> Verb:
        """Draw a verb of an event, without these flags, that makes sense with the subject."""
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

    def clause(self, spec: ClauseSpec, subject: Nominal, verb: Verb, mode: str) -> Clause:
        """Build a clause from a subject, a verb and a mode."""
        self.used.add(verb.name)
        negated = mode not in (NOW, LIKING, PLUPERFECT, HABIT) and not is_each(subject) and self.chance(spec.negation)
        mode = self.unambiguous(mode, subject, verb, spec.question or negated)
        group = VerbGroup(verb, TENSES.get(mode, Tense.PRESENT), self.modal(mode, spec.question), negated)
        parts = [
            part for complement in verb.complements for part in self.complement(complement, verb, subject, group, mode)
        ]
        front: list[Part] = []
        extra = [] if negated or mode in (NOW, LIKING) else self.adverbials(group, parts, spec, subject)
        relative = not extra and self.chance(spec.relatives)
        time = self.time(mode, verb, spec, relative)
        if time and (relative or self.chance(spec.front)) and time.role is Role.TIME and not spec.question:
            front.append(time)
        elif time:
            extra.append(time)
        elif not spec.question and spec.front and mode in (PAST, FUTURE) and self.chance(0.1):
            front.append(self.comment(verb, negated))
        extra.extend(self.focus(mode, negated, verb, [*parts, *extra]))
        if relative and not any(part.role in (Role.NOW, Role.YET) for part in extra):
            parts = self.with_relative(parts)
        return Clause(subject, group, (*parts, *extra), front[0] if front else None)

    def comment(self, verb: Verb, negated: bool) -> Part:
        """Draw a comment such as: unfortunately, of course."""
        lucky = "bad" not in verb.flags and not negated
        sad = "good" not in verb.flags
        open_ = [word for word in lexicon.COMMENT if {"lucky": lucky, "sad": sad}.get("".join(word.use), True)]
        comment = self.random.choice(open_)
        return Part(Role.COMMENT, Fixed(comment.english, comment.german))

    def unambiguous(self, mode: str, subject: Nominal, verb: Verb, supported: bool) -> str:
        """Replace a mode in which the English present and past look the same, as in: they read."""
        base, past, _ = verb.english
        same = base == past and not supported and not subject.agreement.third_singular
        return self.random.choice((FUTURE, MODAL)) if same and mode in (PAST, HABIT) else mode

    def modal(self, mode: str, question: bool = False) -> Modal | None:
        """Draw the modal verb of a mode, or none."""
        if mode == LIKING:
            return LIKE_TO
        choices = {MODAL: MODALS, PAST_MODAL: PAST_MODALS}.get(mode)
        return (
            self.random.choice([modal for modal in choices if not question or modal is not SHOULD]) if choices else None
        )

    def complement(
        self, complement: Complement, verb: Verb, subject: Nominal, group: VerbGroup, mode: str
    ) -> list[Part]:
        """Build the parts that fill a complement of the verb."""
        owner = possessive(subject)
        generic = mode in (HABIT, LIKING) or "presentonly" in verb.flags
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
        """Draw an object of some classes."""
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
        excluded = (("alcohol",) if is_young(subject) else ()) + (() if woman else ("womens",))
        owner = possessive(subject)
        if "make" in verb.flags:
            owner = None
            self.used.add("old")
        if generic and "one" not in verb.flags:
            return self.generic(tuple(name for name in things if name != "town"), excluded)
        return self.thing(things, owner, negated, "one" in verb.flags, excluded)

    def adverbials(self, group: VerbGroup, parts: list[Part], spec: ClauseSpec, subject: Nominal) -> list[Part]:
        """Draw adverbials of manner, company and place that the verb allows."""
        extra: list[Part] = []
        if not spec.adverbials:
            return extra
        verb = group.verb
        known = all(part.phrase.definite for part in parts)
        judged = group.tense is not Tense.FUTURE and group.modal in (None, CAN)
        manners = [manner for manner in verb.manners if judged or manner != "well"]
        if manners and known and self.chance(0.25):
            adverb = lexicon.MANNER[self.random.choice(manners)]
            extra.append(Part(Role.MANNER, Fixed(adverb.english, adverb.german)))
        if len(extra) < spec.adverbials and "with" in verb.flags and self.chance(0.35):
            extra.append(Part(Role.COMPANION, Prepositional("with", "mit", Case.DATIVE, self.person(subject, True))))
        elif len(extra) < spec.adverbials and "for" in verb.flags and self.chance(0.35):
            extra.append(Part(Role.COMPANION, Prepositional("for", "für", Case.ACCUSATIVE, self.person(subject, True))))
        if len(extra) < spec.adverbials and verb.places and self.chance(0.55):
            extra.append(Part(Role.PLACE, self.place(verb.places, possessive(subject), False)))
        return extra

    def focus(self, mode: str, negated: bool, verb: Verb, parts: list[Part]) -> list[Part]:
        """Return the focus adverb of a mode, if any: right now, already, yet."""
        if mode == NOW:
            return [Part(Role.NOW, Fixed("right now", "gerade"))]
        ends = verb.complements or "clock" in verb.flags
        if mode != PERFECT or "chance" in verb.flags or not ends:
            return []
        if negated:
            return [Part(Role.YET, Fixed("yet", "noch"))]
        known = all(part.phrase.definite and part.role is not Role.MANNER for part in parts)
        return [Part(Role.ALREADY, Fixed("already", "schon"))] if known and self.chance(0.6) else []

    def with_relative(self, parts: list[Part]) -> list[Part]:
        """Add a relative clause to the last part if that is a noun phrase that can have one."""
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
        """Build a relative clause in which the noun is the object: that someone has bought."""
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
        subject = self.doer(verb, ClauseSpec(), PAST)
        mode = self.unambiguous(self.random.choice((PAST, PAST, PERFECT)), subject, verb, False)
        group = VerbGroup(verb, TENSES.get(mode, Tense.PRESENT), self.modal(mode))
        return Clause(subject, group, (), Part(Role.OBJECT, Asked(phrase.agreement, human, True)))

    def subject_relative(self, phrase: NounPhrase) -> Clause:
        """Build a relative clause in which the person is the subject: who has bought something."""
        verb = self.suitable(phrase)
        spec = ClauseSpec(adverbials=1, negation=0, front=0, relatives=0)
        draft = self.clause(spec, phrase, verb, self.one_of({PAST: 3, PERFECT: 1}))
        return Clause(Asked(phrase.agreement, True, True), draft.group, draft.parts)


def suits(subject: Nominal | None, verb: Verb) -> bool:
    """Return whether the verb makes sense with the subject; no subject counts as a person."""
    if not isinstance(subject, NounPhrase):
        return "person" in verb.subjects or subject is None
    if "adult" in verb.flags and "young" in subject.noun.classes:
        return False
    return not subject.noun.classes.isdisjoint(verb.subjects)
