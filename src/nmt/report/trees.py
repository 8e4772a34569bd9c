"""Draw trees of a split, reference beside prediction, as SVG that follows the page's colours."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from nmt.parsing.bracket_score import Bracket, compare, counted_brackets
from nmt.parsing.linearise import repair
from nmt.parsing.trees import Leaf, Node, Part, bracketed
from nmt.report.run import Evaluated

MAX_WORDS = 16
"""The largest number of words in a drawn sentence, so that two trees fit side by side."""
WRONG, RIGHT = 4, 2
"""The numbers of trees to draw of a split: those with the lowest F1, and of the complete matches the longest."""
CHARACTER_WIDTH, WORD_GAP, LEVEL_HEIGHT, MARGIN = 7.2, 12, 32, 8
ABOVE_TEXT, BELOW_TEXT, BEND = 12, 4, 5
"""The geometry of a drawing, in pixels, for the size of font in the style sheet."""


@dataclass(frozen=True, slots=True)
class TreePictures:
    """A sentence with its two trees."""

    number: int
    """Line number, from 1."""
    f1: float
    reference: Markup
    predicted: Markup


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a word or a label is drawn."""

    text: str
    x: float
    level: int
    """Levels above the words."""
    style: str
    children: tuple["_Place", ...] = ()


def tree_pictures(split: Evaluated) -> list[TreePictures]:
    """Draw a few trees of a split: the worst predictions, then long ones that are right."""
    scored = []
    lines = zip(split.sources, split.references, split.hypotheses, strict=True)
    for number, (source, *both) in enumerate(lines, start=1):
        words = source.split()
        reference, predicted = (repair(line, words)[0] for line in both)
        if len(words) <= MAX_WORDS and reference is not None and predicted is not None:
            scored.append((compare(reference, predicted).f1, number, reference, predicted))
    wrong = sorted((each for each in scored if each[0] < 100), key=lambda each: each[:2])
    right = sorted((each for each in scored if each[0] == 100), key=lambda each: (-len(bracketed(each[2])), each[1]))
    return [
        TreePictures(number, f1, draw(reference, predicted, "missed"), draw(predicted, reference, "invented"))
        for f1, number, reference, predicted in (*wrong[:WRONG], *right[:RIGHT])
    ]


def draw(tree: Node, other: Node, style: str) -> Markup:
    """Draw a tree; brackets that the other tree lacks get a style."""
    places, width = _lay_out(tree, other, style)
    height = (places.level + 1) * LEVEL_HEIGHT
    shapes = Markup("").join(_shapes(places, places.level))
    opening = Markup('<svg class="tree" role="img" aria-label="{}" viewBox="0 0 {:.0f} {:.0f}" width="{:.0f}">')
    return opening.format(bracketed(tree), width, height, width) + shapes + Markup("</svg>")


def _lay_out(tree: Node, other: Node, style: str) -> tuple[_Place, float]:
    """Return the place of a tree's root, and the width of the drawing."""
    own, theirs = counted_brackets(tree), counted_brackets(other)
    lacking = Counter(filter(None, own)) - Counter(filter(None, theirs))
    styles = _styles(own, lacking, style)
    right = float(MARGIN)

    def place(part: Part) -> _Place:
        nonlocal right
        if isinstance(part, Leaf):
            width = len(part.word) * CHARACTER_WIDTH + WORD_GAP
            right += width
            return _Place(part.word, right - width / 2, 0, "word")
        children = tuple(map(place, part.children))
        level = 1 + max(child.level for child in children)
        return _Place(part.label, (children[0].x + children[-1].x) / 2, level, next(styles), children)

    return place(tree), right + MARGIN


def _styles(own: Sequence[Bracket | None], lacking: Counter[Bracket], style: str) -> Iterator[str]:
    """Yield the style of each bracket; of equal brackets, the first ones are marked."""
    for bracket in own:
        is_lacking = bracket is not None and lacking[bracket] > 0
        if bracket is not None and is_lacking:
            lacking[bracket] -= 1
        yield style if is_lacking else "phrase"


def _shapes(place: _Place, top: int) -> Iterator[Markup]:
    """Yield the shapes of a tree. Lines have right angles, so those of neighbouring phrases never cross."""
    y = _height(place, top)
    for child in place.children:
        yield Markup('<path d="M{:.1f} {:.1f}v{:.1f}H{:.1f}V{:.1f}"/>').format(
            place.x, y + BELOW_TEXT, BEND, child.x, _height(child, top) - ABOVE_TEXT
        )
        yield from _shapes(child, top)
    yield Markup('<text class="{}" x="{:.1f}" y="{:.1f}">{}</text>').format(place.style, place.x, y, place.text)


def _height(place: _Place, top: int) -> float:
    """Return the vertical position of a word or a label."""
    return (top - place.level + 0.5) * LEVEL_HEIGHT
