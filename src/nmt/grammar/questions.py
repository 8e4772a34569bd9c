"""Building questions: yes or no, and those that a question word opens."""

from nmt.grammar.clauses import Clause, Part, Role
from nmt.grammar.determiners import HOW_MANY, WHICH
from nmt.grammar.features import Agreement, Tense
from nmt.grammar.lexicon import verbs
from nmt.grammar.lexicon.entries import Verb
from nmt.grammar.phrases import Fixed, NounPhrase
from nmt.grammar.pronouns import Asked
from nmt.grammar.sentences import Sentence
from nmt.grammar.states import Describer
from nmt.grammar.things import COUNTABLE
from nmt.grammar.verbgroup import VerbGroup
from nmt.grammar.wishes import FUTURE, HABIT, MODAL, PAST, PAST_MODAL, PERFECT, TENSES, Wish

TRANSITIVE = tuple(
    verb
    for verb in verbs.ACTIVITIES
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
    for verb in verbs.ACTIVITIES
    if verb.places and "person" in verb.subjects and verb.flags.isdisjoint({"chance", "state"})
)
WHERE = Fixed("where", "wo")


class Questioner(Describer):
    """Builds questions."""

    def yes_or_no(self) -> Sentence:
        """Does he do it?"""
        if self.chance(0.25):
            return Sentence(self.state(question=True), question=True)
        tenses = (PAST, PERFECT, FUTURE, MODAL, PAST_MODAL, HABIT)
        return Sentence(self.event(Wish(tenses, question=True, adverbials=1, negation=0, relatives=0)), question=True)

    def asking(self) -> Sentence:
        """Who, what, which, where, when, why?"""
        kinds = (self.who, self.what, self.which, self.where, self.when, self.when)
        return Sentence(self.random.choice(kinds)(), question=True)

    def who(self) -> Clause:
        """Who has done it?"""
        tenses = (PAST, PERFECT, FUTURE, MODAL)
        return self.event(Wish(tenses, WHO, question=True, adverbials=1, negation=0, relatives=0))

    def what(self) -> Clause:
        """What, or whom?"""
        verb = self.random.choice(TRANSITIVE)
        return self.opened(verb, WHO if PEOPLE & set(verb.complements[0].classes) else WHAT)

    def which(self) -> Clause:
        """Which one, or how many?"""
        verb = self.random.choice([verb for verb in TRANSITIVE if not PEOPLE & set(verb.complements[0].classes)])
        noun = self.noun(tuple(name for name in verb.complements[0].classes if name != "town"))
        if noun.mass:
            return self.opened(verb, WHAT)
        plural = self.chance(0.4)
        counted = plural and noun.classes & COUNTABLE and self.chance(0.7)
        return self.opened(verb, NounPhrase(HOW_MANY if counted else WHICH, noun, plural))

    def opened(self, verb: Verb, asked: Asked | NounPhrase) -> Clause:
        """A question about the object of the verb."""
        subject = self.doer(verb, Wish(question=True), PAST)
        telling = self.random.choice((PAST, PERFECT, FUTURE, MODAL))
        time = self.time(telling, verb, Wish(question=True), False)
        group = VerbGroup(verb, TENSES.get(telling, Tense.PRESENT), self.modal(telling, question=True))
        return Clause(subject, group, (time,) if time else (), Part(Role.OBJECT, asked))

    def where(self) -> Clause:
        """Where does he do it?"""
        verb = self.random.choice(LOCATED)
        wish = Wish((PAST, FUTURE), None, verb, question=True, adverbials=0, negation=0, relatives=0)
        return self.fronted(self.event(wish), WHERE)

    def when(self) -> Clause:
        """When, or why, does he do it?"""
        word = self.random.choice(ADVERBIAL)
        wish = Wish(
            (PAST, FUTURE),
            question=True,
            adverbials=0,
            negation=0,
            relatives=0,
            time=word.english_words == "why",
        )
        return self.fronted(self.event(wish), word)

    def fronted(self, clause: Clause, word: Fixed) -> Clause:
        """The clause as a question about its circumstances."""
        return Clause(clause.subject, clause.group, clause.parts, Part(Role.PLACE, word))
