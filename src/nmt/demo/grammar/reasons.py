"""Build clauses that give the reasons of others."""

from dataclasses import replace

from nmt.demo.grammar import lexicon
from nmt.demo.grammar.choosing import THEY, YOU, is_each, possessive, pronoun
from nmt.demo.grammar.clauses import Clause, Part, Role
from nmt.demo.grammar.events import suits
from nmt.demo.grammar.features import Tense
from nmt.demo.grammar.lexicon import ENDS, GROUPS, REQUIRES, Verb, verb_named
from nmt.demo.grammar.modes import ClauseSpec, Mode, brief
from nmt.demo.grammar.phrases import Nominal
from nmt.demo.grammar.questions import Questioner
from nmt.demo.grammar.sentences import Connector, Linked
from nmt.demo.grammar.states import VERY
from nmt.demo.grammar.verbgroup import CAN, VerbGroup

MOODS = {word.english: word for word in lexicon.ADJECTIVES}
EFFECTS = (("happy", "good"), ("sad", "bad"), ("angry", "bad"), ("worried", "bad"))
"""Moods, and the flag of the verbs that bring them about."""
SIGHTS = tuple(map(verb_named, GROUPS["sight"]))
ERRANDS = tuple(map(verb_named, GROUPS["errand"]))


class Reasoner(Questioner):
    """Builds clauses that give reasons for others."""

    def agent(self, full: bool = False) -> Nominal:
        """Draw a person to whom a pronoun can refer back."""
        while True:
            subject = self.subject(("person", "family"), full)
            if pronoun(subject) and subject.definite and subject is not YOU and not is_each(subject):
                return subject

    def one_suiting(self, subject: Nominal, verbs: tuple[Verb, ...]) -> Verb:
        """Draw one of the verbs that make sense with the subject."""
        return self.any_of([verb for verb in verbs if suits(subject, verb)])

    def hindrance(self, subject: Nominal, verb: Verb, tense: Tense) -> Clause:
        """Build a clause that explains why someone does not do something, or should not."""
        base, again = verb.english[0], pronoun(subject) or THEY
        if "outdoor" in verb.flags and self.chance(0.5):
            return self.weather(Tense.PAST if tense is Tense.PAST else Tense.PROGRESSIVE)
        if self.chance(0.5) and base not in ENDS:
            missing = REQUIRES.get(base, "money" if "cash" in verb.flags else "time")
            return self.having(again, "time" if self.chance(0.4) else missing, tense, lacking=True)
        word = self.any_of([MOODS[name] for name in ("tired", "ill") if ENDS.get(base) != name])
        return self.being(again, word, tense, False, ("too", "zu") if self.chance(0.3) else VERY)

    def moved_by(self) -> Linked:
        """Build a clause: someone is sad because something is lost."""
        subject = self.agent()
        mood, flag = self.any_of(EFFECTS)
        verb = self.one_suiting(subject, lexicon.verbs_with(flag))
        cause = self.clause(brief(), pronoun(subject) or THEY, verb, Mode.PERFECT)
        return Linked(self.being(subject, MOODS[mood], Tense.PRESENT, False), Connector.BECAUSE, cause)

    def eased(self) -> Linked:
        """Build a clause: someone ate because of hunger."""
        subject = self.agent()
        name, need = self.any_of(list(ENDS.items()))
        first = self.clause(brief(), subject, verb_named(name), Mode.PAST)
        cause = self.feeling(pronoun(subject) or THEY, Tense.PAST, (need,))
        return Linked(first, Connector.BECAUSE, cause, self.chance(0.3))

    def hindered(self) -> Linked:
        """Build a clause: someone could not do it because it rained."""
        subject = self.agent()
        verb = self.suitable(subject)
        draft = self.clause(brief(negation=1), subject, verb, Mode.PAST)
        group = VerbGroup(verb, Tense.PAST, CAN if self.chance(0.5) else None, negated=True)
        cause = self.hindrance(subject, verb, Tense.PAST)
        return Linked(replace(draft, group=group), Connector.BECAUSE, cause, self.chance(0.25))

    def errand(self, subject: Nominal, mode: Mode) -> tuple[Clause, Clause]:
        """Build a clause about going to a place and one about the errand there."""
        if self.chance(0.3):
            verb = self.one_suiting(subject, SIGHTS)
            goal = self.town(True, True)
            means = verb_named(self.any_of(("drive", "travel", "fly")))
        else:
            verb = self.one_suiting(subject, ERRANDS)
            goal = self.place(verb.places, possessive(subject), True, within="place")
            means = verb_named("go")
        time = self.time(mode, means, ClauseSpec(), False)
        front = time if time and self.chance(0.5) else None
        way = Clause(subject, VerbGroup(means, mode.tense), (Part(Role.DIRECTION, goal),), front)
        return way, self.deed(subject, verb)

    def deed(self, subject: Nominal, verb: Verb | None = None) -> Clause:
        """Build a clause for an infinitive; it names no place if a verb is given."""
        chosen = verb or self.suitable(subject, ("chance", "thing", "body"))
        draft = self.clause(brief(adverbials=0 if verb else 1), subject, chosen, Mode.PAST)
        return replace(draft, group=VerbGroup(chosen))
