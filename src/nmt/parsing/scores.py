"""The scores of linearised trees."""

from collections.abc import Sequence
from functools import lru_cache

from nmt import __version__
from nmt.errors import UserError
from nmt.evaluation.metric import Score, Translated
from nmt.parsing.bracket_score import BracketCounts, score_trees
from nmt.parsing.linearise import parse_line
from nmt.parsing.trees import Node


def bracket_score(text: Translated, figure: str) -> Score:
    """Return a figure of the counts of brackets, by its name in `BracketCounts`."""
    counts = count_brackets(tuple(text.hypotheses), tuple(text.references[0]))
    return Score(getattr(counts, figure), _signature(counts))


@lru_cache(maxsize=1)  # one count for all metrics
def count_brackets(hypotheses: Sequence[str], references: Sequence[str]) -> BracketCounts:
    """Return the counts of brackets of linearised trees; a malformed hypothesis is an error sentence."""
    trees = [_reference(line, number) for number, line in enumerate(references, 1)]
    return score_trees(zip(trees, map(parse_line, hypotheses), strict=True))


def _signature(counts: BracketCounts) -> str:
    return (
        f"evalb|params:COLLINS|len:all|roots:not-counted|sentences:{counts.sentences}|errors:{counts.errors}"
        f"|skipped:{counts.skipped}|version:nmt-{__version__}"
    )


def _reference(line: str, number: int) -> Node:
    tree = parse_line(line)
    if tree is None:
        raise UserError(f"line {number} of the references is not a linearised tree: run `make data` again")
    return tree
