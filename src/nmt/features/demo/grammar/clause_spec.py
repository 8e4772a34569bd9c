"""The specification of a random clause: its mode, subject, verb and extras.

A mode combines tense, aspect and modality: past, future, habit, liking and others.
"""

from dataclasses import dataclass

from nmt.features.demo.grammar.features import Tense
from nmt.features.demo.grammar.lexicon import Verb
from nmt.features.demo.grammar.phrases import Nominal
from nmt.features.demo.grammar.verbgroup import CAN, HAVE_TO, MAY, SHOULD, WANT_TO, WOULD_LIKE

PAST, PERFECT, PLUPERFECT = "past", "perfect", "pluperfect"
FUTURE, MODAL, PAST_MODAL = "future", "modal", "past modal"
HABIT, NOW, LIKING, STATE = "habit", "now", "liking", "state"
ANY = {PAST: 34.0, PERFECT: 12.0, FUTURE: 13.0, MODAL: 17.0, PAST_MODAL: 8.0, HABIT: 13.0, NOW: 9.0, LIKING: 5.0}
TENSES = {
    PAST: Tense.PAST,
    PERFECT: Tense.PERFECT,
    PLUPERFECT: Tense.PLUPERFECT,
    FUTURE: Tense.FUTURE,
    PAST_MODAL: Tense.PAST,
    NOW: Tense.PROGRESSIVE,
}
MODALS = (CAN, HAVE_TO, WANT_TO, SHOULD, MAY, WOULD_LIKE)
PAST_MODALS = (CAN, HAVE_TO, WANT_TO, MAY)
TIME_USES = {PAST: "past", PAST_MODAL: "past", FUTURE: "future", MODAL: "future", HABIT: "habit"}
TIME_CHANCES = {PAST: 0.6, PAST_MODAL: 0.35, FUTURE: 0.6, MODAL: 0.3, HABIT: 1.0}


@dataclass(frozen=True, slots=True)
class ClauseSpec:
    """Requirements and probabilities of a clause."""

    tenses: tuple[str, ...] = tuple(ANY)
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
