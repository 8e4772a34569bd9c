"""Build sentences from clauses that make sense together."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from nmt.features.demo.grammar import lexicon
from nmt.features.demo.grammar.choosing import HE, SHE
from nmt.features.demo.grammar.clause_spec import (
    FUTURE,
    HABIT,
    MODAL,
    NOW,
    PAST,
    PAST_MODAL,
    PERFECT,
    PLUPERFECT,
    ClauseSpec,
)
from nmt.features.demo.grammar.clauses import Clause, Part, Role
from nmt.features.demo.grammar.determiners import THE
from nmt.features.demo.grammar.events import suits
from nmt.features.demo.grammar.features import Tense
from nmt.features.demo.grammar.phrases import Fixed, NounPhrase
from nmt.features.demo.grammar.reasons import EASING, MOODS, SIGHTS, Reasoner, brief
from nmt.features.demo.grammar.sentences import (
    AFTER,
    ALTHOUGH,
    AND,
    BECAUSE,
    BEFORE,
    BUT,
    IF,
    IN_ORDER_TO,
    THAT,
    TO,
    WHEN,
    WHETHER,
    WHILE,
    Linked,
    Sentence,
)
from nmt.features.demo.grammar.states import FEELINGS
from nmt.features.demo.grammar.verbgroup import CAN, WANT_TO, VerbGroup

CONTROLLING = tuple(verb for verb in lexicon.MATRIX if "control" in verb.flags)
CLAIMING = tuple(verb for verb in lexicon.MATRIX if "that" in verb.flags)
WONDERING = tuple(verb for verb in lexicon.MATRIX if "whether" in verb.flags)
SCENES = ("household", "party", "office", "tour")
TROUBLES = ("tired", "ill", "hungry", "thirsty")
FAIR = NounPhrase(THE, lexicon.noun_named("weather"))
CONDITIONS = {"rain": "indoor", "fine": "outdoor", "time": "", "money": "cash"}
"""Conditions of a plan, each with the flag of the verbs that depend on it."""
YOUTHFUL = tuple(map(lexicon.verb_named, lexicon.GROUPS["youthful"]))
OFTEN = (Fixed("often", "oft"), Fixed("rarely", "selten"), Fixed("never", "nie"), Fixed("sometimes", "manchmal"))


class Author(Reasoner):
    """Builds sentences."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.kinds: dict[Callable[[], Sentence], float] = {
            self.simple: 26,
            self.described: 11,
            self.narrowed: 9,
            self.yes_or_no: 6,
            self.asking: 8,
            self.joined: 5,
            self.contrasted: 6,
            self.excused: 8,
            self.moved: 4,
            self.although: 5,
            self.conditional: 7,
            self.ordered: 7,
            self.simultaneous: 4,
            self.remembered: 4,
            self.claimed: 12,
            self.wondered: 5,
            self.attempted: 6,
            self.purposeful: 5,
        }

    def sentence(self) -> Sentence:
        """Build a sentence of a random kind."""
        self.used.clear()
        return self.one_of(self.kinds)()

    def simple(self) -> Sentence:
        """Build one clause about an event."""
        return Sentence(self.event(ClauseSpec()))

    def described(self) -> Sentence:
        """Build one clause about a state."""
        kinds: dict[Callable[[], Clause], float] = {
            self.quality: 25,
            self.state: 25,
            self.posture: 10,
            self.existence: 12,
            self.job: 8,
            self.lasting: 12,
            self.built: 8,
            self.price: 7,
            self.anyone_feels: 10,
        }
        return Sentence(self.one_of(kinds)())

    def anyone_feels(self) -> Clause:
        """Build a clause: someone is or was tired."""
        tense = Tense.PRESENT if self.chance(0.6) else Tense.PAST
        return self.feeling(self.agent(full=False), tense, FEELINGS)

    def narrowed(self) -> Sentence:
        """Build a sentence: the man who bought the car lives in Berlin."""
        noun = self.noun(("person",), ("mate",))
        plural = self.chance(0.25)
        bare = NounPhrase(THE, noun, plural, self.adjective(noun, 0.2))
        subject = NounPhrase(THE, noun, plural, bare.adjective, None, self.subject_relative(bare))
        if self.chance(0.45):
            return Sentence(self.state(subject))
        if self.chance(0.3):
            return Sentence(self.feeling(subject, Tense.PRESENT, FEELINGS))
        return Sentence(self.event(brief(PAST, PERFECT, FUTURE, MODAL, subject=subject, negation=0.1)))

    def joined(self) -> Sentence:
        """Build a sentence: one does this and another does that."""
        first, second = self.pair(self.random.choice((PAST, PAST, FUTURE, NOW)))
        return Sentence(Linked(first, AND, second))

    def simultaneous(self) -> Sentence:
        """Build a sentence: while one does this, another does that."""
        first, second = self.pair(PAST)
        return Sentence(Linked(first, WHILE, second, self.chance(0.5)))

    def pair(self, mode: str) -> tuple[Clause, Clause]:
        """Build two clauses about two people who do something in the same scene."""
        scene = self.random.choice(SCENES)
        first = self.event(brief(mode, subject=self.agent(), scene=scene, time=True))
        return first, self.event(brief(mode, subject=self.agent(), scene=scene))

    def contrasted(self) -> Sentence:
        """Build a sentence: someone wants to, but cannot."""
        subject = self.agent(full=False)
        verb = self.suitable(subject)
        mode, tense = (PAST_MODAL, Tense.PAST) if self.chance(0.6) else (MODAL, Tense.PRESENT)
        draft = self.clause(brief(time=True, front=0.3), subject, verb, mode)
        first = Clause(subject, VerbGroup(verb, tense, WANT_TO), draft.parts, draft.front)
        return Sentence(Linked(first, BUT, self.hindrance(self.again(subject), verb, tense)))

    def excused(self) -> Sentence:
        """Build a sentence: someone does not do it, or is happy, because of something."""
        kinds: dict[Callable[[], Linked], float] = {self.moved_by: 4, self.eased: 2, self.hindered: 5}
        return Sentence(self.one_of(kinds)())

    def moved(self) -> Sentence:
        """Build a sentence: someone went somewhere because they wanted to do something there."""
        subject = self.agent(full=False)
        way, deed = self.errand(subject, PAST)
        wanted = Clause(self.again(subject), VerbGroup(deed.group.verb, Tense.PAST, WANT_TO), deed.parts)
        return Sentence(Linked(way, BECAUSE, wanted))

    def purposeful(self) -> Sentence:
        """Build a sentence: someone goes somewhere to do something."""
        way, deed = self.errand(self.agent(full=False), self.random.choice((PAST, FUTURE)))
        return Sentence(Linked(way, IN_ORDER_TO, deed))

    def although(self) -> Sentence:
        """Build a sentence: although he is tired, he does it."""
        subject = self.agent(full=False)
        verb = self.suitable(subject, ("chance", "thing", "body"))
        draft = self.clause(brief(time=True), subject, verb, PAST)
        if "outdoor" in verb.flags and self.chance(0.6):
            trouble = self.weather(Tense.PAST, time=False)
        else:
            trouble = self.feeling(self.again(subject), Tense.PAST, ("ill",) if verb.english[0] in EASING else TROUBLES)
        return Sentence(Linked(draft, ALTHOUGH, trouble, self.chance(0.4)))

    def conditional(self) -> Sentence:
        """Build a sentence: if it rains, we will stay at home."""
        subject = self.agent(full=False)
        case = self.random.choice(list(CONDITIONS))
        verb = self.suitable(subject, ("chance", "thing", "stiff"), CONDITIONS[case])
        draft = self.clause(brief(adverbials=int(case != "rain")), subject, verb, FUTURE)
        group = draft.group if self.chance(0.6) else VerbGroup(draft.group.verb, modal=CAN)
        first = Clause(subject, group, draft.parts)
        if case == "rain":
            condition = self.weather(Tense.PRESENT)
        elif case == "fine":
            condition = Clause(FAIR, VerbGroup(lexicon.BE), (Part(Role.PREDICATE, Fixed("good", "gut")),))
        else:
            condition = self.owning(self.again(subject), case)
        return Sentence(Linked(first, IF, condition, self.chance(0.6)))

    def ordered(self) -> Sentence:
        """Build a sentence: someone does something before or after something else."""
        subject = self.agent(full=False)
        scene = self.random.choice(SCENES)
        first = self.event(brief(PAST, subject=subject, scene=scene))
        connector = self.random.choice((BEFORE, AFTER, AFTER))
        tense = PLUPERFECT if connector is AFTER else PAST
        verb = self.suitable(subject, scene=scene)
        second = self.clause(brief(), self.again(subject), verb, tense)
        return Sentence(Linked(first, connector, second, self.chance(0.5)))

    def remembered(self) -> Sentence:
        """Build a sentence: when she was young, she often did it; when he was in Paris, he did it."""
        if self.chance(0.5):
            subject = self.random.choice((self.relation(None), self.relation(None), HE, SHE))
            then = self.being(self.again(subject), MOODS["young"], Tense.PAST, False)
            verb = self.random.choice(YOUTHFUL)
            draft = self.clause(brief(adverbials=0), subject, verb, HABIT)
            first = Clause(subject, VerbGroup(verb, Tense.PAST), (*draft.parts, self.often()))
        else:
            subject = self.agent(full=False)
            place = Part(Role.PREDICATE, self.town(False, False))
            then = Clause(self.again(subject), VerbGroup(lexicon.BE, Tense.PAST), (place,))
            verb = self.random.choice([verb for verb in SIGHTS if suits(subject, verb)])
            first = self.clause(brief(adverbials=0), subject, verb, PAST)
        return Sentence(Linked(first, WHEN, then, self.chance(0.6)))

    def often(self) -> Part:
        """Draw an adverb of frequency."""
        return Part(Role.FREQUENCY, self.random.choice(OFTEN))

    def claimed(self) -> Sentence:
        """Build a sentence: someone believes that something is so."""
        first = Clause(self.agent(full=False), VerbGroup(self.random.choice(CLAIMING)))
        hoped = first.group.verb.english[0] == "hope"
        if not hoped and self.chance(0.25):
            inner = self.one_of({self.moved_by: 1, self.hindered: 2})()
            return Sentence(Linked(first, THAT, replace(inner, reversed=False)))
        if not hoped and self.chance(0.3):
            return Sentence(Linked(first, THAT, self.quality()))
        return Sentence(Linked(first, THAT, self.event(brief(PAST, FUTURE, PERFECT, MODAL, time=True, negation=0.1))))

    def wondered(self) -> Sentence:
        """Build a sentence: someone asks whether it is so."""
        verb = self.random.choice(WONDERING)
        first = Clause(self.agent(full=True), VerbGroup(verb, negated=verb.english[0] == "know"))
        return Sentence(Linked(first, WHETHER, self.event(brief(PAST, FUTURE, PERFECT, MODAL, time=True))))

    def attempted(self) -> Sentence:
        """Build a sentence: someone tries to do it."""
        verb = self.random.choice(CONTROLLING)
        subject = self.agent(full=False)
        tense = Tense.PAST if self.chance(0.6) or "past" in verb.flags else Tense.PRESENT
        return Sentence(Linked(Clause(subject, VerbGroup(verb, tense)), TO, self.deed(subject)))
