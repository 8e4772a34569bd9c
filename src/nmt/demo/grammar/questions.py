"""Build yes-or-no questions, and questions with a question word."""

from dataclasses import replace
from functools import partial

from nmt.demo.grammar import lexicon
from nmt.demo.grammar.clauses import Clause, Part, Role
from nmt.demo.grammar.determiners import HOW_MANY, WHICH
from nmt.demo.grammar.events import PEOPLE, takes_object
from nmt.demo.grammar.features import Agreement
from nmt.demo.grammar.lexicon import Verb
from nmt.demo.grammar.modes import ClauseSpec, Mode
from nmt.demo.grammar.phrases import Asked, Fixed, NounPhrase
from nmt.demo.grammar.sentences import Sentence
from nmt.demo.grammar.states import Describer
from nmt.demo.grammar.things import COUNTABLE

ASKABLE = tuple(verb for verb in lexicon.ACTIVITIES if verb.flags.isdisjoint(("state", "chance")))
TRANSITIVE = tuple(verb for verb in ASKABLE if takes_object(verb) and "body" not in verb.flags)
LOCATED = tuple(verb for verb in ASKABLE if verb.places and "person" in verb.subjects)
WHO = Asked(Agreement(3, False), human=True, relative=False)
WHAT = Asked(Agreement(3, False), human=False, relative=False)
WHERE, WHEN, WHY = Fixed("where", "wo"), Fixed("when", "wann"), Fixed("why", "warum")
MODES = (Mode.PAST, Mode.PERFECT, Mode.FUTURE, Mode.MODAL)
question_spec = partial(ClauseSpec, question=True, negation=0, relatives=0)


class Questioner(Describer):
    """Builds questions."""

    def yes_or_no(self) -> Sentence:
        """Build a yes-or-no question."""
        if self.chance(0.25):
            return Sentence(self.state(question=True), question=True)
        spec = question_spec((*MODES, Mode.PAST_MODAL, Mode.HABIT), adverbials=1)
        return Sentence(self.event(spec), question=True)

    def asking(self) -> Sentence:
        """Build a question with a question word."""
        kinds = (self._who, self._what, self._which, self._where, self._when, self._when)
        return Sentence(self.any_of(kinds)(), question=True)

    def _who(self) -> Clause:
        """Build a question: who has done it?"""
        return self.event(question_spec(MODES, WHO, adverbials=1))

    def _what(self) -> Clause:
        """Build a question with what or whom."""
        verb = self.any_of(TRANSITIVE)
        return self._opened(verb, WHAT if set(PEOPLE).isdisjoint(verb.complements[0].classes) else WHO)

    def _which(self) -> Clause:
        """Build a question with which or how many."""
        verb = self.any_of([verb for verb in TRANSITIVE if set(PEOPLE).isdisjoint(verb.complements[0].classes)])
        noun = self.noun(tuple(name for name in verb.complements[0].classes if name != "town"))
        if noun.mass:
            return self._opened(verb, WHAT)
        plural = self.chance(0.4)
        counted = plural and noun.classes & COUNTABLE and self.chance(0.7)
        return self._opened(verb, NounPhrase(HOW_MANY if counted else WHICH, noun, plural))

    def _opened(self, verb: Verb, asked: Asked | NounPhrase) -> Clause:
        """Build a question about the object of a verb."""
        subject = self.doer(verb, Mode.PAST, question=True)
        mode = self.any_of(MODES)
        time = self.time(mode, verb, ClauseSpec(question=True), False)
        group = self.group(verb, mode, question=True)
        return Clause(subject, group, (time,) if time else (), Part(Role.OBJECT, asked))

    def _where(self) -> Clause:
        """Build a question: where does he do it?"""
        verb = self.any_of(LOCATED)
        return self._fronted(question_spec((Mode.PAST, Mode.FUTURE), None, verb, adverbials=0), WHERE)

    def _when(self) -> Clause:
        """Build a question with when or why."""
        word = self.any_of((WHEN, WHY, WHY))
        return self._fronted(question_spec((Mode.PAST, Mode.FUTURE), adverbials=0, time=word is WHY), word)

    def _fronted(self, spec: ClauseSpec, word: Fixed) -> Clause:
        """Build a question that opens with a question word."""
        return replace(self.event(spec), front=Part(Role.PLACE, word))
