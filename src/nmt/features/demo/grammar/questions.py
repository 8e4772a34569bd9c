"""Build yes-or-no questions, and questions with a question word."""

from nmt.features.demo.grammar import lexicon
from nmt.features.demo.grammar.clause_spec import FUTURE, HABIT, MODAL, PAST, PAST_MODAL, PERFECT, TENSES, ClauseSpec
from nmt.features.demo.grammar.clauses import Clause, Part, Role
from nmt.features.demo.grammar.determiners import HOW_MANY, WHICH
from nmt.features.demo.grammar.features import Agreement, Tense
from nmt.features.demo.grammar.lexicon import Verb
from nmt.features.demo.grammar.phrases import Asked, Fixed, NounPhrase
from nmt.features.demo.grammar.sentences import Sentence
from nmt.features.demo.grammar.states import Describer
from nmt.features.demo.grammar.things import COUNTABLE
from nmt.features.demo.grammar.verbgroup import VerbGroup

TRANSITIVE = tuple(
    verb
    for verb in lexicon.ACTIVITIES
    if [complement.kind for complement in verb.complements] == ["acc"]
    and "person" in verb.subjects
    and verb.flags.isdisjoint({"state", "chance", "body"})
)
PEOPLE = {"person", "family"}
WHO = Asked(Agreement(3, False), human=True, relative=False)
WHAT = Asked(Agreement(3, False), human=False, relative=False)
ADVERBIAL = (Fixed("when", "wann"), Fixed("why", "warum"), Fixed("why", "warum"))
LOCATED = tuple(
    verb
    for verb in lexicon.ACTIVITIES
    if verb.places and "person" in verb.subjects and verb.flags.isdisjoint({"chance", "state"})
)
WHERE = Fixed("where", "wo")


class Questioner(Describer):
    """Builds questions."""

    def yes_or_no(self) -> Sentence:
        """Build a yes-or-no question."""
        if self.chance(0.25):
            return Sentence(self.state(question=True), question=True)
        tenses = (PAST, PERFECT, FUTURE, MODAL, PAST_MODAL, HABIT)
        return Sentence(
            self.event(ClauseSpec(tenses, question=True, adverbials=1, negation=0, relatives=0)), question=True
        )

    def asking(self) -> Sentence:
        """Build a question with a question word."""
        kinds = (self.who, self.what, self.which, self.where, self.when, self.when)
        return Sentence(self.random.choice(kinds)(), question=True)

    def who(self) -> Clause:
        """Build a question: who has done it?"""
        tenses = (PAST, PERFECT, FUTURE, MODAL)
        return self.event(ClauseSpec(tenses, WHO, question=True, adverbials=1, negation=0, relatives=0))

    def what(self) -> Clause:
        """Build a question with what or whom."""
        verb = self.random.choice(TRANSITIVE)
        return self.opened(verb, WHO if PEOPLE & set(verb.complements[0].classes) else WHAT)

    def which(self) -> Clause:
        """Build a question with which or how many."""
        verb = self.random.choice([verb for verb in TRANSITIVE if not PEOPLE & set(verb.complements[0].classes)])
        noun = self.noun(tuple(name for name in verb.complements[0].classes if name != "town"))
        if noun.mass:
            return self.opened(verb, WHAT)
        plural = self.chance(0.4)
        counted = plural and noun.classes & COUNTABLE and self.chance(0.7)
        return self.opened(verb, NounPhrase(HOW_MANY if counted else WHICH, noun, plural))

    def opened(self, verb: Verb, asked: Asked | NounPhrase) -> Clause:
        """Build a question about the object of a verb."""
        subject = self.doer(verb, ClauseSpec(question=True), PAST)
        mode = self.random.choice((PAST, PERFECT, FUTURE, MODAL))
        time = self.time(mode, verb, ClauseSpec(question=True), False)
        group = VerbGroup(verb, TENSES.get(mode, Tense.PRESENT), self.modal(mode, question=True))
        return Clause(subject, group, (time,) if time else (), Part(Role.OBJECT, asked))

    def where(self) -> Clause:
        """Build a question: where does he do it?"""
        verb = self.random.choice(LOCATED)
        spec = ClauseSpec((PAST, FUTURE), None, verb, question=True, adverbials=0, negation=0, relatives=0)
        return self.fronted(self.event(spec), WHERE)

    def when(self) -> Clause:
        """Build a question with when or why."""
        word = self.random.choice(ADVERBIAL)
        spec = ClauseSpec(
            (PAST, FUTURE),
            question=True,
            adverbials=0,
            negation=0,
            relatives=0,
            time=word.english == "why",
        )
        return self.fronted(self.event(spec), word)

    def fronted(self, clause: Clause, word: Fixed) -> Clause:
        """Return a clause as a question that opens with a question word."""
        return Clause(clause.subject, clause.group, clause.parts, Part(Role.PLACE, word))
