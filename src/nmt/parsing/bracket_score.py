"""Score trees by their labelled brackets, as evalb counts them with COLLINS.prm.

Words with the tag of punctuation and empty elements are left out, and phrases without other words with them. Function
tags do not count, ADVP and PRT are the same label, and the bracket around a whole tree is not scored. Brackets of a
tree are a multiset: one that occurs twice can be matched twice. A pair of trees with different words is an error: it
is left out of all other counts.
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from nmt.parsing.linearise import PUNCTUATION_TAGS
from nmt.parsing.trees import EMPTY_ELEMENT, ROOTS, Leaf, Node, Part, leaves

DELETED = PUNCTUATION_TAGS | ROOTS | {EMPTY_ELEMENT}
"""Words with these tags, and brackets with these labels, are not counted."""
EQUAL_LABELS = {"PRT": "ADVP"}
"""Labels that count as another one."""

Bracket = tuple[str, int, int]
"""The label of a phrase, and the indices of its first word and of the word after its last."""


class BracketCounts(NamedTuple):
    """Counts over pairs of a reference and a predicted tree."""

    sentences: int = 0
    """Pairs, errors included."""
    errors: int = 0
    """Pairs that could not be compared, because the words differ or no tree was predicted."""
    skipped: int = 0
    """Pairs whose predicted tree has no word that counts."""
    complete: int = 0
    """Pairs with exactly the same brackets."""
    matched: int = 0
    """Brackets of both trees."""
    reference: int = 0
    """Brackets of the reference trees."""
    predicted: int = 0
    """Brackets of the predicted trees."""

    @property
    def precision(self) -> float:
        """Share of the predicted brackets that are in the reference, in percent."""
        return _percent(self.matched, self.predicted)

    @property
    def recall(self) -> float:
        """Share of the brackets of the reference that were predicted, in percent."""
        return _percent(self.matched, self.reference)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _percent(2 * self.matched, self.reference + self.predicted)

    @property
    def complete_match(self) -> float:
        """Share of the pairs with exactly the same brackets, in percent, among those that were compared."""
        return _percent(self.complete, self.sentences - self.errors - self.skipped)


def score_trees(pairs: Iterable[tuple[Node, Node | None]]) -> BracketCounts:
    """Return the counts of pairs of a reference and a predicted tree; None is a tree that could not be read."""
    counts = [BracketCounts(), *(compare(*pair) for pair in pairs)]
    return BracketCounts(*map(sum, zip(*counts, strict=True)))


def compare(reference: Node, predicted: Node | None) -> BracketCounts:
    """Return the counts of one pair."""
    if predicted is None:
        return BracketCounts(sentences=1, errors=1)
    wanted_words, found_words = (
        [leaf.word for leaf in leaves(tree) if leaf.tag not in DELETED] for tree in (reference, predicted)
    )
    if not found_words:
        return BracketCounts(sentences=1, skipped=1)
    if wanted_words != found_words:
        return BracketCounts(sentences=1, errors=1)
    wanted, found = (Counter(filter(None, counted_brackets(tree))) for tree in (reference, predicted))
    matched = (wanted & found).total()
    return BracketCounts(1, 0, 0, int(wanted == found), matched, wanted.total(), found.total())


def counted_brackets(tree: Node) -> list[Bracket | None]:
    """Return the bracket of each phrase, inner ones before outer ones; None for those that are not counted."""
    found: list[Bracket | None] = []
    words = 0

    def visit(part: Part) -> None:
        nonlocal words
        if isinstance(part, Leaf):
            words += part.tag not in DELETED
            return
        start = words
        for child in part.children:
            visit(child)
        label = re.split("[-=]", part.label, maxsplit=1)[0]
        label = EQUAL_LABELS.get(label, label)
        found.append((label, start, words) if words > start and label not in DELETED else None)

    visit(tree)
    return found


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
