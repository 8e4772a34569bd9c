"""Which combinations of words and frames the training text never shows: a rule, not a list.

Every word and every frame is in the training text; what is held out is that they meet. A combination is held out where
a hash of its spelling says so, which depends on neither the seed nor the interpreter.
"""

import hashlib
from collections.abc import Iterable
from functools import cache

from nmt.grammar.features import Order
from nmt.grammar.lexicon.entries import Complement
from nmt.grammar.lexicon.modifiers import ADJECTIVES
from nmt.grammar.lexicon.nouns import of_class
from nmt.grammar.lexicon.verbs import ACTIVITIES
from nmt.grammar.lexicon.verbs import ALL as VERBS

FREE = frozenset(verb.name for verb in ACTIVITIES)
"""Verbs found in every frame; the others have few frames, and need them all in training."""
NOTHING = Complement("", ())
SHARE = 12
"""One in so many pairs of adjective and noun, and of verb and object, is held out."""
FRAMES = tuple(
    f"{order.value} {form}"
    for order in (Order.FIRST, Order.SECOND, Order.LAST)
    for form in ("simple", "participle", "infinitive")
    if order is not Order.SECOND or form == "infinitive"
)
"""Order and shape of the German verb; of these, each verb lacks one in training. Main clauses in the present and the
perfect are not among them: some verbs are hardly used in another."""
WIDE = 8
"""A word that goes with fewer others than this meets all of them in training."""


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


@cache
def held_out(pairing: tuple[str, str, str]) -> bool:
    """Whether a combination (kind, word, frame or second word) is kept from training."""
    kind, word, other = pairing
    if kind == "frame":
        return word in FREE and other == FRAMES[_number(word) % len(FRAMES)]
    return _number(" ".join(pairing)) % SHARE == 0 and _width(kind, word) >= WIDE


@cache
def _width(kind: str, word: str) -> int:
    """How many nouns go with an adjective, or with a verb as its object."""
    if kind == "adjective":
        classes = next(adjective.classes for adjective in ADJECTIVES if adjective.english == word)
        return len(of_class(*classes))
    verbs = [verb for verb in VERBS if verb.name == word]
    return max(len(of_class(*complement.classes)) for verb in verbs for complement in (*verb.complements, NOTHING))


def is_unseen(pairings: Iterable[tuple[str, str, str]]) -> bool:
    """Whether a sentence has a combination that training lacks."""
    return any(held_out(pairing) for pairing in pairings)
