"""Draw trees of a split as text, reference beside prediction, with the brackets that differ marked."""

from collections import Counter
from typing import NamedTuple

from markupsafe import Markup, escape

from nmt.parsing.bracket_score import compare, counted_brackets
from nmt.parsing.linearise import repair
from nmt.parsing.trees import Leaf, Node, Part, drawn, leaves
from nmt.report.run import Evaluated

MAX_WORDS = 16
"""The largest number of words in a drawn sentence, so that a tree fits on a screen."""
WRONG, RIGHT = 4, 2
"""The numbers of trees to draw of a split: those with the lowest F1, and of the complete matches the longest."""


class TreePair(NamedTuple):
    """A sentence with its two trees."""

    number: int
    """Line number, from 1."""
    f1: float
    reference: Markup
    predicted: Markup


def tree_pairs(split: Evaluated) -> list[TreePair]:
    """Draw a few trees of a split: the worst predictions, then long ones that are right."""
    scored = []
    lines = zip(split.text.untagged_sources, split.text.references, split.hypotheses, strict=True)
    for number, (source, *both) in enumerate(lines, start=1):
        words = source.split()
        reference, predicted = (repair(line, words)[0] for line in both)
        if len(words) <= MAX_WORDS and reference is not None and predicted is not None:
            counts = compare(reference, predicted)
            f1 = 100.0 if counts.complete else counts.f1  # trees without a bracket that counts are right, too
            scored.append((f1, number, reference, predicted))
    wrong = sorted((each for each in scored if each[0] < 100), key=lambda each: each[:2])
    right = sorted((each for each in scored if each[0] == 100), key=lambda each: -len(list(leaves(each[2]))))
    return [
        TreePair(number, f1, draw(reference, predicted, "missed"), draw(predicted, reference, "invented"))
        for f1, number, reference, predicted in (*wrong[:WRONG], *right[:RIGHT])
    ]


def draw(tree: Node, other: Node, style: str) -> Markup:
    """Draw a tree; labels of brackets that the other tree lacks get a style, the first ones of equal brackets."""
    own, theirs = counted_brackets(tree), counted_brackets(other)
    lacking = Counter(filter(None, own)) - Counter(filter(None, theirs))
    brackets = iter(own)  # inner ones before outer ones, as `mark` meets them

    def mark(part: Part) -> Part:
        if isinstance(part, Leaf):
            return Leaf(escape(part.tag), escape(part.word))
        children, bracket = tuple(map(mark, part.children)), next(brackets)
        if bracket is None or not lacking[bracket]:
            return Node(escape(part.label), children)
        lacking[bracket] -= 1
        return Node(Markup('<span class="{}">{}</span>').format(style, part.label), children)

    return Markup('<pre class="scroll">{}</pre>').format(Markup(drawn(mark(tree))))  # `mark` escapes
