"""What is decided about a random clause before its words: its mode, subject, verb and extras."""

from dataclasses import dataclass
from enum import Enum
from functools import partial

from nmt.demo.grammar.features import Tense
from nmt.demo.grammar.lexicon import Verb
from nmt.demo.grammar.phrases import Nominal


class Mode(Enum):
    """Tense, aspect and modality of a clause.

    A mode has the weight with which it is drawn, a tense, the use of its time adverbials and the probability of one,
    and the flags of the verbs that are impossible in it.
    """

    PAST = 34, Tense.PAST, "past", 0.6
    PERFECT = 12, Tense.PERFECT
    FUTURE = 13, Tense.FUTURE, "future", 0.6, ("chance",)
    MODAL = 17, Tense.PRESENT, "future", 0.3, ("chance", "thing")
    PAST_MODAL = 8, Tense.PAST, "past", 0.35, ("chance", "thing")
    HABIT = 13, Tense.PRESENT, "habit", 1.0, ("once", "slow")
    NOW = 9, Tense.PROGRESSIVE, "", 0.0, ("event", "chance", "once")
    LIKING = 5, Tense.PRESENT, "", 0.0, ("event", "chance", "once", "stiff", "thing", "slow")
    PLUPERFECT = 10, Tense.PLUPERFECT
    STATE = 10, Tense.PRESENT

    def __init__(
        self, weight: int, tense: Tense, time_use: str = "", time_chance: float = 0.0, barred: tuple[str, ...] = ()
    ) -> None:
        self.weight, self.tense, self.time_use, self.time_chance, self.barred = (
            weight, tense, time_use, time_chance, barred,
        )  # fmt: skip


*ANY, _, _ = Mode
"""The modes of ordinary clauses."""


@dataclass(frozen=True, slots=True)
class ClauseSpec:
    """Requirements and probabilities of a clause."""

    modes: tuple[Mode, ...] = tuple(ANY)
    subject: Nominal | None = None
    verb: Verb | None = None
    question: bool = False
    adverbials: int = 2
    negation: float = 0.12
    front: float = 0.3
    relatives: float = 0.25
    time: bool = True
    planned: bool = False
    """Restrict the verb to actions that people plan."""
    scene: str = ""
    """Restrict the verb to those of this scene."""


plain = partial(ClauseSpec, negation=0.0, front=0.0, relatives=0.0)
"""Specify a clause that is neither negated nor rearranged."""
brief = partial(plain, adverbials=1, time=False, planned=True)
"""Specify a short clause about something done on purpose."""
