"""Choose by a rule the combinations of words and frames that are kept out of the training text.

Every word and every frame is in the training text; only some of their combinations are held out. A hash of its
spelling decides about each combination, so the choice depends on neither the seed nor the interpreter.
"""

import hashlib
from collections.abc import Iterable
from functools import cache

from nmt.demo.grammar.features import Order
from nmt.demo.grammar.lexicon import ACTIVITIES, ADJECTIVES, VERBS, Complement, nouns_of

FREE = frozenset(verb.name for verb in ACTIVITIES)
"""Verbs used in every frame; the others have few frames and need them all in training."""
NOTHING = Complement("", ())
PAIRINGS_PER_HELD_OUT = 12
"""One in this many pairs of adjective and noun, and of verb and object, is held out."""
FRAMES = tuple(
    f"{order.value} {form}"
    for order in (Order.FIRST, Order.SECOND, Order.LAST)
    for form in ("simple", "participle", "infinitive")
    if order is not Order.SECOND or form == "infinitive"
)
"""Order and shape of the German verb; each verb lacks one of these in training. Main clauses in the present and the
perfect are left out because some verbs have hardly any other form."""
MIN_PARTNERS = 8
"""Words that combine with fewer others than this meet all of them in training."""


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


@cache
def held_out(pairing: tuple[str, str, str]) -> bool:
    """Return whether a combination (kind, word, and frame or second word) is kept out of the training text."""
    kind, word, other = pairing
    if kind == "frame":
        return word in FREE and other == FRAMES[_number(word) % len(FRAMES)]
    return _number(" ".join(pairing)) % PAIRINGS_PER_HELD_OUT == 0 and _partners(kind, word) >= MIN_PARTNERS


@cache
def _partners(kind: str, word: str) -> int:
    """Return how many nouns combine with an adjective, or with a verb as its object."""
    if kind == "adjective":
        classes = next(adjective.classes for adjective in ADJECTIVES if adjective.english == word)
        return len(nouns_of(classes))
    verbs = [verb for verb in VERBS if verb.name == word]
    return max(len(nouns_of(complement.classes)) for verb in verbs for complement in (*verb.complements, NOTHING))


def is_unseen(pairings: Iterable[tuple[str, str, str]]) -> bool:
    """Return whether a sentence has a combination that training lacks."""
    return any(held_out(pairing) for pairing in pairings)
