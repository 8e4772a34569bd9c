"""Build clauses about events: a verb with a possible tense, its objects, and adverbials that suit both."""

from dataclasses import replace
from functools import cache

from nmt.demo.grammar import lexicon
from nmt.demo.grammar.choosing import is_each, is_woman, is_young, kin_owner, possessive
from nmt.demo.grammar.clauses import Clause, Part, Role
from nmt.demo.grammar.determiners import THE
from nmt.demo.grammar.features import Case, Tense
from nmt.demo.grammar.lexicon import Complement, Verb
from nmt.demo.grammar.modes import ClauseSpec, Mode, plain
from nmt.demo.grammar.phrases import Asked, Fixed, Nominal, NounPhrase, Prepositional
from nmt.demo.grammar.things import Supplier, adverb_part
from nmt.demo.grammar.verbgroup import CAN, HAVE_TO, LIKE_TO, MAY, SHOULD, WANT_TO, WOULD_LIKE, VerbGroup

EVENTFUL = tuple(verb for verb in lexicon.ACTIVITIES if verb.flags.isdisjoint(("state", "posture")))
PEOPLE = ("person", "family")
MODALS = {
    Mode.MODAL: (CAN, HAVE_TO, WANT_TO, SHOULD, MAY, WOULD_LIKE),
    Mode.PAST_MODAL: (CAN, HAVE_TO, WANT_TO, MAY),
    Mode.LIKING: (LIKE_TO,),
}
TRIES = 20


class Narrator(Supplier):
    """Builds clauses about events."""

    def event(self, spec: ClauseSpec) -> Clause:
        """Build a clause: someone does something."""
        (mode,) = self.random.choices(spec.modes, [mode.weight for mode in spec.modes])
        barred = (*mode.barred, "chance") if spec.planned else mode.barred
        verb = spec.verb or self.suitable(spec.subject, barred, spec.scene)
        return self.clause(spec, spec.subject or self.doer(verb, mode, spec.question), verb, mode)

    def doer(self, verb: Verb, mode: Mode, question: bool = False) -> Nominal:
        """Draw a subject; statements about `you` and questions about `I` are avoided."""
        for _ in range(TRIES):
            subject = self.subject(verb.subjects)
            told_or_asked = subject.light and subject.agreement.person == (1 if question else 2)
            if suits(subject, verb) and (mode is Mode.MODAL or not told_or_asked):
                return subject
        return self.subject(verb.subjects, full=True)

    def suitable(self, subject: Nominal | None, barred: tuple[str, ...] = ("chance", "thing"), scene: str = "") -> Verb:
        """Draw a verb of an event, without these flags, that makes sense with the subject."""
        verb = self.any_of(
            [verb for verb in _eventful(barred, scene) if verb.name not in self.used and suits(subject, verb)]
        )
        self.used.add(verb.name)
        return verb

    def clause(self, spec: ClauseSpec, subject: Nominal, verb: Verb, mode: Mode) -> Clause:
        """Build a clause from a subject, a verb and a mode."""
        self.used.add(verb.name)
        positive = mode in (Mode.NOW, Mode.LIKING, Mode.PLUPERFECT, Mode.HABIT) or is_each(subject)
        negated = not positive and self.chance(spec.negation)
        mode = self._unambiguous(mode, subject, verb, spec.question or negated)
        group = self.group(verb, mode, spec.question, negated)
        parts = [part for each in verb.complements for part in self._complement(each, subject, group, mode)]
        extra = [] if negated or mode in (Mode.NOW, Mode.LIKING) else self._adverbials(group, parts, spec, subject)
        relative = not extra and self.chance(spec.relatives)
        time, front = self.time(mode, verb, spec, relative), None
        if time and (relative or self.chance(spec.front)) and time.role is Role.TIME and not spec.question:
            front = time
        elif time:
            extra.append(time)
        elif not spec.question and spec.front and mode in (Mode.PAST, Mode.FUTURE) and self.chance(0.1):
            front = self._comment(verb, negated)
        extra.extend(self._focus(mode, negated, verb, [*parts, *extra]))
        if relative and not any(part.role in (Role.NOW, Role.YET) for part in extra):
            parts = self._with_relative(parts)
        return Clause(subject, group, (*parts, *extra), front)

    def group(self, verb: Verb, mode: Mode, question: bool = False, negated: bool = False) -> VerbGroup:
        """Draw the modal of a mode, if it has one, for a verb in that mode."""
        modals = [modal for modal in MODALS.get(mode, ()) if not question or modal is not SHOULD]
        modal = self.any_of(modals) if mode in (Mode.MODAL, Mode.PAST_MODAL) else next(iter(modals), None)
        return VerbGroup(verb, mode.tense, modal, negated)

    def _comment(self, verb: Verb, negated: bool) -> Part:
        """Draw a comment such as: unfortunately, of course."""
        moods = {"lucky": "bad" not in verb.flags and not negated, "sad": "good" not in verb.flags}
        fitting = [word for word in lexicon.COMMENT if all(moods[mood] for mood in word.use)]
        return adverb_part(Role.COMMENT, self.any_of(fitting))

    def _unambiguous(self, mode: Mode, subject: Nominal, verb: Verb, supported: bool) -> Mode:
        """Replace a mode in which the English present and past look the same, as in: they read."""
        base, past, _ = verb.english
        same = base == past and not supported and not subject.agreement.third_singular
        return self.any_of((Mode.FUTURE, Mode.MODAL)) if same and mode in (Mode.PAST, Mode.HABIT) else mode

    def _complement(self, complement: Complement, subject: Nominal, group: VerbGroup, mode: Mode) -> list[Part]:
        """Build the parts that fill a complement of the verb."""
        verb = group.verb
        generic = mode in (Mode.HABIT, Mode.LIKING) or "presentonly" in verb.flags
        match complement.kind:
            case "acc":
                return [Part(Role.OBJECT, self._object(complement.classes, subject, group.negated, verb, generic))]
            case "dat":
                role = Role.SHIFTED if "shift" in verb.flags else Role.RECIPIENT
                return [Part(role, self.person(subject, generic), Case.DATIVE)]
            case "to" | "at" as kind:
                return [Part(Role.DIRECTION, self.place(complement.classes, possessive(subject), kind == "to"))]
            case "home":
                return [Part(Role.DIRECTION, Fixed("home", "nach Hause"))]
            case _:
                nominal = self._object(complement.classes, subject, False, verb, False)
                phrase = Prepositional(complement.english, complement.german, complement.case, nominal)
                return [Part(Role.OBLIQUE, phrase)]

    def _object(self, classes: tuple[str, ...], subject: Nominal, negated: bool, verb: Verb, generic: bool) -> Nominal:
        """Draw an object of some classes."""
        if "body" in verb.flags:
            return self.own_clothing(subject, negated, "state" in verb.flags)
        persons = [name for name in classes if name in PEOPLE]
        things = tuple(name for name in classes if name not in PEOPLE)
        if persons and (not things or self.chance(0.4)):
            if "person" in persons:
                return self.person(subject, generic, "family" in persons)
            return self.relation(kin_owner(subject))
        excluded = (("alcohol",) if is_young(subject) else ()) + (() if is_woman(subject) else ("womens",))
        if "make" in verb.flags:
            self.used.add("old")
        if generic and "one" not in verb.flags:
            return self.generic(tuple(name for name in things if name != "town"), excluded)
        owner = None if "make" in verb.flags else possessive(subject)
        return self.thing(things, owner, negated, "one" in verb.flags, excluded)

    def _adverbials(self, group: VerbGroup, parts: list[Part], spec: ClauseSpec, subject: Nominal) -> list[Part]:
        """Draw adverbials of manner, company and place that the verb allows."""
        extra: list[Part] = []
        if not spec.adverbials:
            return extra
        verb = group.verb
        judged = group.tense is not Tense.FUTURE and group.modal in (None, CAN)
        manners = [manner for manner in verb.manners if judged or manner != "well"]
        if manners and all(part.phrase.definite for part in parts) and self.chance(0.25):
            extra.append(adverb_part(Role.MANNER, lexicon.MANNER[self.any_of(manners)]))
        if len(extra) < spec.adverbials and "with" in verb.flags and self.chance(0.35):
            extra.append(Part(Role.COMPANION, Prepositional("with", "mit", Case.DATIVE, self.person(subject, True))))
        elif len(extra) < spec.adverbials and "for" in verb.flags and self.chance(0.35):
            extra.append(Part(Role.COMPANION, Prepositional("for", "für", Case.ACCUSATIVE, self.person(subject, True))))
        if len(extra) < spec.adverbials and verb.places and self.chance(0.55):
            extra.append(Part(Role.PLACE, self.place(verb.places, possessive(subject), False)))
        return extra

    def _focus(self, mode: Mode, negated: bool, verb: Verb, parts: list[Part]) -> list[Part]:
        """Return the focus adverb of a mode, if any: right now, already, yet."""
        if mode is Mode.NOW:
            return [Part(Role.NOW, Fixed("right now", "gerade"))]
        ends = verb.complements or "clock" in verb.flags
        if mode is not Mode.PERFECT or "chance" in verb.flags or not ends:
            return []
        if negated:
            return [Part(Role.YET, Fixed("yet", "noch"))]
        known = all(part.phrase.definite and part.role is not Role.MANNER for part in parts)
        return [Part(Role.ALREADY, Fixed("already", "schon"))] if known and self.chance(0.6) else []

    def _with_relative(self, parts: list[Part]) -> list[Part]:
        """Add a relative clause, with the noun as its object, to the last part if that can have one."""
        phrase = parts[-1].phrase if parts and parts[-1].role is Role.OBJECT else None
        if not isinstance(phrase, NounPhrase) or phrase.possessor or phrase.noun.mass or phrase.determiner is not THE:
            return parts
        takers = [
            verb
            for verb in EVENTFUL
            if takes_object(verb)
            and "body" not in verb.flags
            and verb.name not in self.used
            and not phrase.noun.classes.isdisjoint(verb.complements[0].classes)
        ]
        if not takers:
            return parts
        verb = self.any_of(takers)
        human = not phrase.noun.classes.isdisjoint(PEOPLE)
        subject = self.doer(verb, Mode.PAST)
        mode = self._unambiguous(self.any_of((Mode.PAST, Mode.PAST, Mode.PERFECT)), subject, verb, False)
        that = Part(Role.OBJECT, Asked(phrase.agreement, human, True))
        relative = Clause(subject, self.group(verb, mode), (), that)
        return [*parts[:-1], Part(Role.OBJECT, replace(phrase, relative=relative))]

    def subject_relative(self, phrase: NounPhrase) -> Clause:
        """Build a relative clause in which the person is the subject: who has bought something."""
        verb = self.suitable(phrase)
        draft = self.clause(plain(adverbials=1), phrase, verb, self.one_of({Mode.PAST: 3, Mode.PERFECT: 1}))
        return replace(draft, subject=Asked(phrase.agreement, True, True))


@cache
def _eventful(barred: tuple[str, ...], scene: str) -> tuple[Verb, ...]:
    """Return the verbs of events without these flags, and of this scene if there is one."""
    return tuple(verb for verb in EVENTFUL if verb.flags.isdisjoint(barred) and (not scene or scene in verb.flags))


def takes_object(verb: Verb) -> bool:
    """Return whether a person does it to an object, and to nothing else."""
    return [complement.kind for complement in verb.complements] == ["acc"] and "person" in verb.subjects


def suits(subject: Nominal | None, verb: Verb) -> bool:
    """Return whether the verb makes sense with the subject; no subject counts as a person."""
    if not isinstance(subject, NounPhrase):
        return "person" in verb.subjects or subject is None
    if "adult" in verb.flags and "young" in subject.noun.classes:
        return False
    return not subject.noun.classes.isdisjoint(verb.subjects)
