"""Build sentences from clauses that make sense together."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from nmt.demo.grammar import lexicon
from nmt.demo.grammar.choosing import HE, SHE, THEY, pronoun
from nmt.demo.grammar.clauses import Clause, Part, Role
from nmt.demo.grammar.determiners import THE
from nmt.demo.grammar.features import Tense
from nmt.demo.grammar.lexicon import ENDS
from nmt.demo.grammar.modes import ClauseSpec, Mode, brief
from nmt.demo.grammar.phrases import Fixed, Nominal, NounPhrase
from nmt.demo.grammar.reasons import MOODS, SIGHTS, Reasoner
from nmt.demo.grammar.sentences import Connector, Linked, Sentence
from nmt.demo.grammar.states import FEELINGS
from nmt.demo.grammar.verbgroup import CAN, WANT_TO, VerbGroup

CONTROLLING, CLAIMING, WONDERING = (
    tuple(verb for verb in lexicon.MATRIX if flag in verb.flags) for flag in ("control", "that", "whether")
)
SCENES = ("household", "party", "office", "tour")
TROUBLES = ("tired", "ill", "hungry", "thirsty")
FAIR = Clause(
    NounPhrase(THE, lexicon.noun_named("weather")),
    VerbGroup(lexicon.BE),
    (Part(Role.PREDICATE, Fixed("good", "gut")),),
)
CONDITIONS = {"rain": "indoor", "fine": "outdoor", "time": "", "money": "cash"}
"""Conditions of a plan, each with the flag of the verbs that depend on it."""
YOUTHFUL = tuple(map(lexicon.verb_named, lexicon.GROUPS["youthful"]))
OFTEN = (Fixed("often", "oft"), Fixed("rarely", "selten"), Fixed("never", "nie"), Fixed("sometimes", "manchmal"))
TOLD = (Mode.PAST, Mode.FUTURE, Mode.PERFECT, Mode.MODAL)
"""Modes of reported clauses."""


class Author(Reasoner):
    """Builds sentences."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.kinds: dict[Callable[[], Sentence | Clause | Linked], float] = {
            self._simple: 26, self._described: 11, self._narrowed: 9, self.yes_or_no: 6, self.asking: 8,
            self._joined: 5, self._contrasted: 6, self._excused: 8, self._moved: 4, self._although: 5,
            self._conditional: 7, self._ordered: 7, self._simultaneous: 4, self._remembered: 4, self._claimed: 12,
            self._wondered: 5, self._attempted: 6, self._purposeful: 5,
        }  # fmt: skip
        self.states: dict[Callable[[], Clause], float] = {
            self.quality: 25, self.state: 25, self.posture: 10, self.existence: 12, self.job: 8, self.lasting: 12,
            self.built: 8, self.price: 7, self._anyone_feels: 10,
        }  # fmt: skip

    def sentence(self) -> Sentence:
        """Build a sentence of a random kind."""
        self.used.clear()
        found = self.one_of(self.kinds)()
        return found if isinstance(found, Sentence) else Sentence(found)

    def _simple(self) -> Clause:
        """Build one clause about an event."""
        return self.event(ClauseSpec())

    def _described(self) -> Clause:
        """Build one clause about a state."""
        return self.one_of(self.states)()

    def _anyone_feels(self) -> Clause:
        """Build a clause: someone is or was tired."""
        tense = self.present_or_past(0.6)
        return self.feeling(self.agent(), tense, FEELINGS)

    def _narrowed(self) -> Clause:
        """Build a sentence: the man who bought the car lives in Berlin."""
        noun = self.noun(("person",), ("mate",))
        bare = NounPhrase(THE, noun, self.chance(0.25), self.adjective(noun, 0.2))
        subject = replace(bare, relative=self.subject_relative(bare))
        if self.chance(0.45):
            return self.state(subject)
        if self.chance(0.3):
            return self.feeling(subject, Tense.PRESENT, FEELINGS)
        return self.event(brief((Mode.PAST, Mode.PERFECT, Mode.FUTURE, Mode.MODAL), subject, negation=0.1))

    def _joined(self) -> Linked:
        """Build a sentence: one does this and another does that."""
        return self._pair(self.any_of((Mode.PAST, Mode.PAST, Mode.FUTURE, Mode.NOW)), Connector.AND)

    def _simultaneous(self) -> Linked:
        """Build a sentence: while one does this, another does that."""
        return replace(self._pair(Mode.PAST, Connector.WHILE), reversed=self.chance(0.5))

    def _pair(self, mode: Mode, connector: Connector) -> Linked:
        """Link two clauses about two people who do something in the same scene."""
        scene = self.any_of(SCENES)
        first = self.event(brief((mode,), self.agent(full=True), scene=scene, time=True))
        return Linked(first, connector, self.event(brief((mode,), self.agent(full=True), scene=scene)))

    def _contrasted(self) -> Linked:
        """Build a sentence: someone wants to, but cannot."""
        subject = self.agent()
        verb = self.suitable(subject)
        mode = Mode.PAST_MODAL if self.chance(0.6) else Mode.MODAL
        draft = self.clause(brief(time=True, front=0.3), subject, verb, mode)
        first = replace(draft, group=VerbGroup(verb, mode.tense, WANT_TO))
        return Linked(first, Connector.BUT, self.hindrance(subject, verb, mode.tense))

    def _excused(self) -> Linked:
        """Build a sentence: someone does not do it, or is happy, because of something."""
        kinds: dict[Callable[[], Linked], float] = {self.moved_by: 4, self.eased: 2, self.hindered: 5}
        return self.one_of(kinds)()

    def _moved(self) -> Linked:
        """Build a sentence: someone went somewhere because they wanted to do something there."""
        subject = self.agent()
        way, deed = self.errand(subject, Mode.PAST)
        group = VerbGroup(deed.group.verb, Tense.PAST, WANT_TO)
        return Linked(way, Connector.BECAUSE, Clause(pronoun(subject) or THEY, group, deed.parts))

    def _purposeful(self) -> Linked:
        """Build a sentence: someone goes somewhere to do something."""
        way, deed = self.errand(self.agent(), self.any_of((Mode.PAST, Mode.FUTURE)))
        return Linked(way, Connector.IN_ORDER_TO, deed)

    def _although(self) -> Linked:
        """Build a sentence: although he is tired, he does it."""
        subject = self.agent()
        verb = self.suitable(subject, ("chance", "thing", "body"))
        draft = self.clause(brief(time=True), subject, verb, Mode.PAST)
        if "outdoor" in verb.flags and self.chance(0.6):
            trouble = self.weather(Tense.PAST)
        else:
            troubles = ("ill",) if verb.english[0] in ENDS else TROUBLES
            trouble = self.feeling(pronoun(subject) or THEY, Tense.PAST, troubles)
        return Linked(draft, Connector.ALTHOUGH, trouble, self.chance(0.4))

    def _conditional(self) -> Linked:
        """Build a sentence: if it rains, we will stay at home."""
        subject = self.agent()
        case = self.any_of(list(CONDITIONS))
        verb = self.suitable(subject, ("chance", "thing", "stiff"), CONDITIONS[case])
        draft = self.clause(brief(adverbials=int(case != "rain")), subject, verb, Mode.FUTURE)
        group = draft.group if self.chance(0.6) else VerbGroup(verb, modal=CAN)
        if case == "rain":
            condition = self.weather(Tense.PRESENT)
        else:
            condition = FAIR if case == "fine" else self.having(pronoun(subject) or THEY, case)
        return Linked(replace(draft, group=group), Connector.IF, condition, self.chance(0.6))

    def _ordered(self) -> Linked:
        """Build a sentence: someone does something before or after something else."""
        subject = self.agent()
        scene = self.any_of(SCENES)
        first = self.event(brief((Mode.PAST,), subject, scene=scene))
        connector = self.any_of((Connector.BEFORE, Connector.AFTER, Connector.AFTER))
        mode = Mode.PLUPERFECT if connector is Connector.AFTER else Mode.PAST
        verb = self.suitable(subject, scene=scene)
        second = self.clause(brief(), pronoun(subject) or THEY, verb, mode)
        return Linked(first, connector, second, self.chance(0.5))

    def _remembered(self) -> Linked:
        """Build a sentence: when she was young, she often did it; when he was in Paris, he did it."""
        if self.chance(0.5):
            relatives: list[Nominal] = [self.relation(None), self.relation(None)]
            subject = self.any_of([*relatives, HE, SHE])
            then = self.being(pronoun(subject) or THEY, MOODS["young"], Tense.PAST, False)
            verb = self.any_of(YOUTHFUL)
            draft = self.clause(brief(adverbials=0), subject, verb, Mode.HABIT)
            often = Part(Role.FREQUENCY, self.any_of(OFTEN))
            first = Clause(subject, VerbGroup(verb, Tense.PAST), (*draft.parts, often))
        else:
            subject = self.agent()
            place = Part(Role.PREDICATE, self.town(False, False))
            then = Clause(pronoun(subject) or THEY, VerbGroup(lexicon.BE, Tense.PAST), (place,))
            first = self.clause(brief(adverbials=0), subject, self.one_suiting(subject, SIGHTS), Mode.PAST)
        return Linked(first, Connector.WHEN, then, self.chance(0.6))

    def _claimed(self) -> Linked:
        """Build a sentence: someone believes that something is so."""
        first = Clause(self.agent(), VerbGroup(self.any_of(CLAIMING)))
        hoped = first.group.verb.base == "hope"
        if not hoped and self.chance(0.25):
            kinds: dict[Callable[[], Linked], float] = {self.moved_by: 1, self.hindered: 2}
            return Linked(first, Connector.THAT, replace(self.one_of(kinds)(), reversed=False))
        if not hoped and self.chance(0.3):
            return Linked(first, Connector.THAT, self.quality())
        return Linked(first, Connector.THAT, self.event(brief(TOLD, time=True, negation=0.1)))

    def _wondered(self) -> Linked:
        """Build a sentence: someone asks whether it is so."""
        verb = self.any_of(WONDERING)
        first = Clause(self.agent(full=True), VerbGroup(verb, negated=verb.base == "know"))
        return Linked(first, Connector.WHETHER, self.event(brief(TOLD, time=True)))

    def _attempted(self) -> Linked:
        """Build a sentence: someone tries to do it."""
        verb = self.any_of(CONTROLLING)
        subject = self.agent()
        past = self.chance(0.6) or "past" in verb.flags
        group = VerbGroup(verb, Tense.PAST if past else Tense.PRESENT)
        return Linked(Clause(subject, group), Connector.TO, self.deed(subject))
