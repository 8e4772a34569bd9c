"""Building sentences: which clauses go together, so that they make sense together."""

from collections.abc import Callable
from random import Random

from nmt.data.demo.choosing import pronoun
from nmt.data.demo.clauses import Clause, Part, Role
from nmt.data.demo.events import (
    FUTURE,
    HABIT,
    MODAL,
    NOW,
    PAST,
    PAST_MODAL,
    PERFECT,
    PLUPERFECT,
    TENSES,
    Wish,
)
from nmt.data.demo.features import Agreement, Tense
from nmt.data.demo.lexicon import modifiers, nouns, verbs
from nmt.data.demo.lexicon.entries import Verb
from nmt.data.demo.phrases import (
    HOW_MANY,
    THE,
    WHICH,
    Asked,
    Fixed,
    Nominal,
    NounPhrase,
    Owned,
    Pronoun,
)
from nmt.data.demo.sentences import (
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
from nmt.data.demo.states import Describer
from nmt.data.demo.verbgroup import CAN, WANT_TO, VerbGroup

BRIEF = Wish(adverbials=1, relatives=0, front=0, time=False, negation=0)
EPISODE = (PAST,)
CONTROLLING = tuple(verb for verb in verbs.MATRIX if "control" in verb.flags)
CLAIMING = tuple(verb for verb in verbs.MATRIX if "that" in verb.flags)
WONDERING = tuple(verb for verb in verbs.MATRIX if "whether" in verb.flags)
GOOD = tuple(verb for verb in verbs.ACTIVITIES if "good" in verb.flags)
BAD = tuple(verb for verb in verbs.ACTIVITIES if "bad" in verb.flags)
TRANSITIVE = tuple(verb for verb in verbs.ACTIVITIES if [c.kind for c in verb.complements] == ["acc"])
MOODS = {word.english: word for word in modifiers.ADJECTIVES}
GO, DRIVE, RUN = verbs.named("go"), verbs.named("drive"), verbs.named("run")


def brief(*tenses: str, subject: Nominal | None = None, verb: Verb | None = None, **changes: float) -> Wish:
    """A wish for a short clause."""
    return Wish(
        tenses,
        subject,
        verb,
        adverbials=1,
        negation=changes.get("negation", 0.0),
        front=changes.get("front", 0.0),
        relatives=0,
        time=bool(changes.get("time", 0)),
    )


class Author(Describer):
    """Builds sentences."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self.kinds: dict[Callable[[], Sentence], float] = {
            self.simple: 30,
            self.described: 15,
            self.narrowed: 8,
            self.yes_or_no: 6,
            self.asking: 8,
            self.joined: 5,
            self.contrasted: 6,
            self.excused: 7,
            self.moved: 4,
            self.although: 5,
            self.conditional: 6,
            self.ordered: 7,
            self.simultaneous: 3,
            self.remembered: 3,
            self.claimed: 8,
            self.wondered: 4,
            self.attempted: 6,
            self.purposeful: 4,
        }

    def sentence(self) -> Sentence:
        """Any sentence."""
        self.used.clear()
        return self.random.choices(list(self.kinds), list(self.kinds.values()))[0]()

    def agent(self, full: bool = True) -> Nominal:
        """A person that a pronoun can take up again."""
        while True:
            subject = self.subject(("person", "family"), full)
            if pronoun(subject):
                return subject

    def again(self, subject: Nominal) -> Pronoun:
        """The pronoun for a subject chosen by `agent`."""
        found = pronoun(subject)
        assert found is not None
        return found

    def simple(self) -> Sentence:
        """One clause about an event."""
        return Sentence(self.event(Wish()))

    def described(self) -> Sentence:
        """One clause about a state."""
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
        return Sentence(self.random.choices(list(kinds), list(kinds.values()))[0]())

    def anyone_feels(self) -> Clause:
        """Someone is or was tired."""
        tense = Tense.PRESENT if self.chance(0.6) else Tense.PAST
        return self.feeling(self.subject(("person", "family")), tense, ("state", "mood"))

    def narrowed(self) -> Sentence:
        """The man who bought the car lives in Berlin."""
        noun = self.noun(("person",))
        plural = self.chance(0.25)
        bare = NounPhrase(THE, noun, plural, self.adjective(noun, 0.2))
        subject = NounPhrase(THE, noun, plural, bare.adjective, None, self.subject_relative(bare))
        if self.chance(0.45):
            return Sentence(self.state(subject))
        if self.chance(0.3):
            return Sentence(self.feeling(subject, Tense.PRESENT))
        return Sentence(self.event(brief(PAST, PERFECT, FUTURE, MODAL, subject=subject, negation=0.1)))

    def yes_or_no(self) -> Sentence:
        """Does he do it?"""
        tenses = (PAST, PERFECT, FUTURE, MODAL, PAST_MODAL, HABIT)
        if self.chance(0.25):
            return Sentence(self.state(question=True), question=True)
        return Sentence(self.event(Wish(tenses, question=True, adverbials=1, negation=0, relatives=0)), question=True)

    def asking(self) -> Sentence:
        """Who, what, which, where, when, why?"""
        kinds = (self.who, self.what, self.which, self.adverbial_question, self.adverbial_question)
        return Sentence(self.random.choice(kinds)(), question=True)

    def who(self) -> Clause:
        """Who has done it?"""
        verb = self.suitable(None)
        while "person" not in verb.subjects:
            verb = self.suitable(None)
        return self.event(
            Wish(
                (PAST, PERFECT, FUTURE, MODAL),
                Asked(Agreement(3, False), True, False),
                verb,
                adverbials=1,
                front=0,
                negation=0,
                relatives=0,
            )
        )

    def what(self) -> Clause:
        """What has he done?"""
        return self.about(lambda human: Asked(Agreement(3, False), human, False))

    def which(self) -> Clause:
        """Which one, or how many, has he taken?"""
        verb = self.transitive(("person",))
        classes = verb.complements[0].classes
        noun = self.noun(tuple(name for name in classes if name != "town"))
        if noun.mass:
            return self.what()
        plural = self.chance(0.4)
        determiner = HOW_MANY if plural and self.chance(0.6) else WHICH
        return self.opened(verb, NounPhrase(determiner, noun, plural))

    def about(self, asked: Callable[[bool], Asked]) -> Clause:
        """A clause opened by a question word for its object."""
        verb = self.transitive(())
        classes = verb.complements[0].classes
        return self.opened(verb, asked("person" in classes))

    def transitive(self, apart: tuple[str, ...]) -> Verb:
        """A verb with one object."""
        pool = [
            verb
            for verb in TRANSITIVE
            if not set(apart) & set(verb.complements[0].classes) and "state" not in verb.flags
        ]
        return self.random.choice(pool)

    def opened(self, verb: Verb, asked: Asked | NounPhrase) -> Clause:
        """A question about the object of the verb."""
        subject = self.subject(verb.subjects, full=self.chance(0.6))
        telling = self.random.choice((PAST, PERFECT, FUTURE, MODAL))
        tense = TENSES.get(telling, Tense.PRESENT)
        time = self.time(telling, verb, Wish(question=True), False)
        parts = (time,) if time else ()
        return Clause(subject, VerbGroup(verb, tense, self.modal(telling)), parts, Part(Role.OBJECT, asked))

    def adverbial_question(self) -> Clause:
        """Where, when or why does he do it?"""
        word, wort = self.random.choice((("where", "wo"), ("when", "wann"), ("why", "warum"), ("why", "warum")))
        wish = Wish((PAST, FUTURE, MODAL), question=True, adverbials=0, negation=0.0, relatives=0, time=word == "why")
        clause = self.event(wish)
        while word == "where" and not clause.group.verb.places:
            clause = self.event(wish)
        return Clause(clause.subject, clause.group, clause.parts, Part(Role.PLACE, Fixed(word, wort)))

    def joined(self) -> Sentence:
        """One does this and another does that."""
        tense = self.random.choice((PAST, PAST, FUTURE, NOW, PERFECT))
        first = self.event(brief(tense, subject=self.agent()))
        second = self.event(brief(tense, subject=self.agent()))
        return Sentence(Linked(first, AND, second))

    def contrasted(self) -> Sentence:
        """Someone wants to, but cannot."""
        subject = self.agent(full=False)
        verb = self.suitable(subject)
        past = self.chance(0.6)
        wish = brief(PAST_MODAL if past else MODAL, subject=subject, verb=verb, time=1, front=0.3)
        told = self.clause(wish, subject, verb, PAST_MODAL if past else MODAL)
        group = VerbGroup(verb, told.group.tense, WANT_TO)
        first = Clause(subject, group, told.parts, told.front)
        return Sentence(Linked(first, BUT, self.hindrance(self.again(subject), Tense.PAST if past else Tense.PRESENT)))

    def hindrance(self, subject: Pronoun, tense: Tense) -> Clause:
        """What keeps someone from doing something."""
        if self.chance(0.3):
            return self.weather(Tense.PAST if tense is Tense.PAST else Tense.PROGRESSIVE, time=False)
        return self.lack(subject, tense) if self.chance(0.5) else self.feeling(subject, tense, ("state",))

    def excused(self) -> Sentence:
        """Someone does not do it because there is no time; someone is happy because something happened."""
        subject = self.agent(full=False)
        if self.chance(0.45):
            mood, pool = self.random.choice((("happy", GOOD), ("sad", BAD), ("angry", BAD), ("worried", BAD)))
            word = MOODS[mood]
            verb = self.random.choice(pool)
            cause = self.clause(
                brief(PAST, subject=self.again(subject), negation=0), self.again(subject), verb, PERFECT
            )
            return Sentence(Linked(self.being(subject, word, Tense.PRESENT, False), BECAUSE, cause))
        verb = self.suitable(subject)
        told = self.clause(brief(PAST, subject=subject, negation=1), subject, verb, PAST)
        past = VerbGroup(verb, Tense.PAST, CAN if self.chance(0.5) else None, True)
        first = Clause(subject, past, told.parts)
        reversed_ = self.chance(0.25) and not isinstance(subject, NounPhrase | Owned)
        return Sentence(Linked(first, BECAUSE, self.hindrance(self.again(subject), Tense.PAST), reversed_))

    def moved(self) -> Sentence:
        """Someone went somewhere because of a wish."""
        subject = self.agent(full=False)
        verb = self.random.choice((GO, DRIVE))
        first = self.clause(brief(PAST, time=1, front=0.4), subject, verb, PAST)
        again = self.again(subject)
        aim = self.suitable(again)
        told = self.clause(brief(PAST_MODAL), again, aim, PAST_MODAL)
        second = Clause(again, VerbGroup(aim, Tense.PAST, WANT_TO), told.parts)
        return Sentence(Linked(first, BECAUSE, second))

    def although(self) -> Sentence:
        """Although he is tired, he does it."""
        subject = self.agent(full=False)
        told = self.event(brief(PAST, subject=subject, time=1))
        hindrance = self.hindrance(self.again(subject), Tense.PAST)
        return Sentence(Linked(told, ALTHOUGH, hindrance, self.chance(0.4) and told.front is None))

    def conditional(self) -> Sentence:
        """If it rains, we will stay at home."""
        subject = self.agent(full=False)
        first = self.event(brief(FUTURE, MODAL, subject=subject, time=0, negation=0.15))
        condition = self.weather(Tense.PRESENT) if self.chance(0.4) else self.owning(self.again(subject), Tense.PRESENT)
        if self.chance(0.2):
            weather = NounPhrase(THE, nouns.BY_ENGLISH["weather"])
            condition = Clause(weather, VerbGroup(verbs.BE), (Part(Role.PREDICATE, Fixed("good", "gut")),))
        return Sentence(Linked(first, IF, condition, self.chance(0.6)))

    def ordered(self) -> Sentence:
        """Before or after."""
        subject = self.agent(full=False)
        again = self.again(subject)
        first = self.event(brief(PAST, subject=subject))
        connector = self.random.choice((BEFORE, AFTER, AFTER))
        tense = PLUPERFECT if connector is AFTER else PAST
        second = self.event(brief(tense, subject=again))
        return Sentence(Linked(first, connector, second, self.chance(0.5)))

    def simultaneous(self) -> Sentence:
        """While one does this, another does that."""
        first = self.event(brief(PAST, subject=self.agent()))
        second = self.event(brief(PAST, subject=self.agent()))
        return Sentence(Linked(first, WHILE, second, self.chance(0.5)))

    def remembered(self) -> Sentence:
        """When he was a child, he often did it."""
        subject = self.agent(full=False)
        again = self.again(subject)
        second: Clause = self.feeling(again, Tense.PAST, ("state",))
        if self.chance(0.5):
            place = self.town(False, False)
            second = Clause(again, VerbGroup(verbs.BE, Tense.PAST), (Part(Role.PREDICATE, place),))
        first = self.event(brief(PAST, subject=subject))
        return Sentence(Linked(first, WHEN, second, self.chance(0.6)))

    def claimed(self) -> Sentence:
        """Someone believes that something is so."""
        verb = self.random.choice(CLAIMING)
        first = Clause(self.subject(("person", "family")), VerbGroup(verb))
        inner: Clause | Linked
        if self.chance(0.3):
            told = self.excused().body
            inner = told
        elif self.chance(0.3):
            inner = self.quality()
        else:
            inner = self.event(brief(PAST, FUTURE, PERFECT, MODAL, time=1, negation=0.1))
        return Sentence(Linked(first, THAT, inner))

    def wondered(self) -> Sentence:
        """Someone asks whether it is so."""
        verb = self.random.choice(WONDERING)
        negated = verb.english[0] == "know"
        first = Clause(self.subject(("person", "family")), VerbGroup(verb, negated=negated))
        return Sentence(Linked(first, WHETHER, self.event(brief(PAST, FUTURE, PERFECT, MODAL, time=1))))

    def attempted(self) -> Sentence:
        """Someone tries to do it."""
        verb = self.random.choice(CONTROLLING)
        subject = self.agent(full=False)
        tense = Tense.PAST if self.chance(0.6) or "past" in verb.flags else Tense.PRESENT
        return Sentence(Linked(Clause(subject, VerbGroup(verb, tense)), TO, self.deed(subject)))

    def deed(self, subject: Nominal) -> Clause:
        """A clause to be put in the infinitive."""
        deed = self.event(brief(PAST, subject=subject))
        return Clause(deed.subject, VerbGroup(deed.group.verb), deed.parts)

    def purposeful(self) -> Sentence:
        """Someone goes somewhere to do something."""
        subject = self.agent(full=False)
        verb = self.random.choice((GO, GO, DRIVE, RUN))
        first = self.clause(brief(PAST, FUTURE, time=1, front=0.4), subject, verb, self.random.choice((PAST, FUTURE)))
        return Sentence(Linked(first, IN_ORDER_TO, self.deed(subject)))
