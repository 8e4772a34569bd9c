"""Which combinations of words and frames the training text never shows: a rule, not a list.

Every word and every frame is in the training text; what is held out is that they meet. A combination is held out where
a hash of its spelling says so, which depends on neither the seed nor the interpreter.
"""

import hashlib
from collections.abc import Iterable
from functools import cache

from nmt.data.demo.features import Order

SHARE = 12
"""One in so many pairs of adjective and noun, and of verb and object, is held out."""
FRAMES = tuple(
    f"{order.value} {form}"
    for order in (Order.FIRST, Order.SECOND, Order.LAST)
    for form in ("simple", "participle", "infinitive")
    if (order, form) != (Order.SECOND, "simple")
)
"""Order and shape of the German verb; of these, each verb lacks one in training."""


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


@cache
def held_out(pairing: tuple[str, str, str]) -> bool:
    """Whether a combination (kind, word, frame or second word) is kept from training."""
    kind, word, other = pairing
    if kind == "frame":
        return other == FRAMES[_number(word) % len(FRAMES)]
    return _number(" ".join(pairing)) % SHARE == 0


def is_unseen(pairings: Iterable[tuple[str, str, str]]) -> bool:
    """Whether a sentence has a combination that training lacks."""
    return any(held_out(pairing) for pairing in pairings)
