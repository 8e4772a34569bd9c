"""The metrics of linearised trees."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from nmt import __version__
from nmt.errors import UserError
from nmt.evaluation.metric import Metric, Score, Translated
from nmt.parsing.bracket_score import BracketCounts, score_trees
from nmt.parsing.linearise import parse_line
from nmt.parsing.trees import Node


def _metric(title: str, figure: Callable[[BracketCounts], float]) -> Metric:
    """Return a metric that is a figure of the counts of brackets."""

    def score(text: Translated) -> Score:
        counts = count_brackets(tuple(text.hypotheses), tuple(text.references[0]))
        return Score(figure(counts), _signature(counts))

    return Metric(title, score)


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


BRACKET_METRICS: Mapping[str, Metric] = {
    "bracket_f1": _metric("Bracket F1", lambda counts: counts.f1),
    "bracket_precision": _metric("Bracket precision", lambda counts: counts.precision),
    "bracket_recall": _metric("Bracket recall", lambda counts: counts.recall),
    "complete_match": _metric("Complete match", lambda counts: counts.complete_match),
}
"""By key in eval/<split>.json, in the order in which scores are shown."""
