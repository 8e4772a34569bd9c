"""Build clauses that give the reasons of others."""

from nmt.features.demo.grammar import lexicon
from nmt.features.demo.grammar.choosing import THEY, YOU, is_each, possessive, pronoun
from nmt.features.demo.grammar.clause_spec import PAST, PERFECT, TENSES, ClauseSpec
from nmt.features.demo.grammar.clauses import Clause, Part, Role
from nmt.features.demo.grammar.events import suits
from nmt.features.demo.grammar.features import Tense
from nmt.features.demo.grammar.lexicon import Verb
from nmt.features.demo.grammar.phrases import Nominal, Pronoun
from nmt.features.demo.grammar.questions import Questioner
from nmt.features.demo.grammar.sentences import BECAUSE, Linked
from nmt.features.demo.grammar.states import VERY
from nmt.features.demo.grammar.verbgroup import CAN, VerbGroup

GOOD = tuple(verb for verb in lexicon.ACTIVITIES if "good" in verb.flags)
BAD = tuple(verb for verb in lexicon.ACTIVITIES if "bad" in verb.flags)
MOODS = {word.english: word for word in lexicon.ADJECTIVES}
EASING = {"sleep": "tired", "rest": "tired", "eat": "hungry", "drink": "thirsty"}
"""Verbs that satisfy a need."""
MISSING = {"drive": "car", "hike": "map", "write": "pen", "sign": "pen", "cut": "knife", "repair": "hammer"}
MISSING |= {"photograph": "camera", "lock": "key", "travel": "passport", "fly": "passport", "park": "time"}
"""Verbs, and a thing that each of them requires."""
SIGHTS = tuple(lexicon.verb_named(name) for name in ("visit", "meet", "work", "shop"))
ERRANDS = tuple(
    lexicon.verb_named(name)
    for name in (
        "read",
        "buy",
        "meet",
        "sing",
        "play",
        "work",
        "learn",
        "swim",
        "shop",
        "order",
        "have breakfast",
    )
)


def brief(
    *tenses: str,
    subject: Nominal | None = None,
    scene: str = "",
    adverbials: int = 1,
    negation: float = 0.0,
    front: float = 0.0,
    time: bool = False,
) -> ClauseSpec:
    """Return the specification of a short clause about something done on purpose."""
    return ClauseSpec(
        tenses,
        subject,
        adverbials=adverbials,
        negation=negation,
        front=front,
        relatives=0,
        time=time,
        planned=True,
        scene=scene,
    )


class Reasoner(Questioner):
    """Builds clauses that give reasons for others."""

    def agent(self, full: bool = True) -> Nominal:
        """Draw a person to whom a pronoun can refer back."""
        while True:
            subject = self.subject(("person", "family"), full)
            if pronoun(subject) and subject.definite and subject is not YOU and not is_each(subject):
                return subject

    def again(self, subject: Nominal) -> Pronoun:
        """Return the pronoun for a subject chosen by `agent`."""
        return pronoun(subject) or THEY

    def hindrance(self, subject: Pronoun, verb: Verb, tense: Tense) -> Clause:
        """Build a clause that explains why someone does not do something, or should not."""
        if "outdoor" in verb.flags and self.chance(0.5):
            return self.weather(Tense.PAST if tense is Tense.PAST else Tense.PROGRESSIVE, time=False)
        if self.chance(0.5) and verb.english[0] not in EASING:
            missing = MISSING.get(verb.english[0], "money" if "cash" in verb.flags else "time")
            return self.lack(subject, tense, "time" if self.chance(0.4) else missing)
        word = self.random.choice([MOODS[name] for name in ("tired", "ill") if EASING.get(verb.english[0]) != name])
        return self.being(subject, word, tense, False, ("too", "zu") if self.chance(0.3) else VERY)

    def moved_by(self) -> Linked:
        """Build a clause: someone is sad because something is lost."""
        subject = self.agent(full=False)
        mood, pool = self.random.choice((("happy", GOOD), ("sad", BAD), ("angry", BAD), ("worried", BAD)))
        verb = self.random.choice([verb for verb in pool if suits(subject, verb)])
        cause = self.clause(brief(), self.again(subject), verb, PERFECT)
        return Linked(self.being(subject, MOODS[mood], Tense.PRESENT, False), BECAUSE, cause)

    def eased(self) -> Linked:
        """Build a clause: someone ate because of hunger."""
        subject = self.agent(full=False)
        name, need = self.random.choice(list(EASING.items()))
        first = self.clause(brief(), subject, lexicon.verb_named(name), PAST)
        return Linked(first, BECAUSE, self.feeling(self.again(subject), Tense.PAST, (need,)), self.chance(0.3))

    def hindered(self) -> Linked:
        """Build a clause: someone could not do it because it rained."""
        subject = self.agent(full=False)
        verb = self.suitable(subject)
        draft = self.clause(brief(negation=1), subject, verb, PAST)
        group = VerbGroup(verb, Tense.PAST, CAN if self.chance(0.5) else None, negated=True)
        cause = self.hindrance(self.again(subject), verb, Tense.PAST)
        return Linked(Clause(subject, group, draft.parts), BECAUSE, cause, self.chance(0.25))

    def errand(self, subject: Nominal, mode: str) -> tuple[Clause, Clause]:
        """Build a clause about going to a place and one about the errand there."""
        if self.chance(0.3):
            verb = self.random.choice([verb for verb in SIGHTS if suits(subject, verb)])
            goal = self.town(True, True)
            means = lexicon.verb_named(self.random.choice(("drive", "travel", "fly")))
        else:
            verb = self.random.choice([verb for verb in ERRANDS if suits(subject, verb)])
            goal = self.place(verb.places, possessive(subject), True, within="place")
            means = lexicon.verb_named("go")
        time = self.time(mode, means, ClauseSpec(), False)
        parts = (Part(Role.DIRECTION, goal),)
        group = VerbGroup(means, TENSES[mode])
        way = Clause(subject, group, parts, time) if time and self.chance(0.5) else Clause(subject, group, parts)
        return way, self.deed(subject, verb)

    def deed(self, subject: Nominal, verb: Verb | None = None) -> Clause:
        """Build a clause for an infinitive; it names no place if a verb is given."""
        chosen = verb or self.suitable(subject, ("chance", "thing", "body"))
        draft = self.clause(brief(adverbials=0 if verb else 1), subject, chosen, PAST)
        return Clause(subject, VerbGroup(chosen), draft.parts)
