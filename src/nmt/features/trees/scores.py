"""The metrics of linearised trees."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from nmt import __version__
from nmt.config.schema import Config
from nmt.errors import UserError
from nmt.evaluation.metric import Metric, Score, Translated
from nmt.features.trees.settings import TREES
from nmt.parsing.bracket_score import BracketCounts, score_trees
from nmt.parsing.linearise import parse_line
from nmt.parsing.trees import Node

PAPER_F1 = {"parsing/wsj": 91.3, "parsing/wsj_semi": 92.7}
"""Table 4 of the paper: F1 on section 23, by experiment."""


@lru_cache(maxsize=1)  # one count for all metrics
def count_brackets(hypotheses: Sequence[str], references: Sequence[str]) -> BracketCounts:
    """Return the counts of brackets of linearised trees; a malformed hypothesis is an error sentence."""
    trees = [_reference(line, number) for number, line in enumerate(references, 1)]
    return score_trees(zip(trees, map(parse_line, hypotheses), strict=True))


def paper_f1(config: Config, split: str) -> float | None:
    """Return the paper's bracket F1 of this experiment, or None if it has none."""
    return PAPER_F1.get(config.name) if split == "test" else None


def _bracket_score(figure: Callable[[BracketCounts], float]) -> Callable[[Translated], Score]:
    """Return a function that computes a figure of the counts of brackets."""

    def score(text: Translated) -> Score:
        counts = count_brackets(tuple(text.hypotheses), tuple(text.references[0]))
        return Score(figure(counts), _signature(counts))

    return score


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


F1 = Metric(
    "Bracket F1", _bracket_score(lambda counts: counts.f1), task=TREES, paper="nmt.features.trees.scores:paper_f1"
)
PRECISION = Metric("Bracket precision", _bracket_score(lambda counts: counts.precision), task=TREES)
RECALL = Metric("Bracket recall", _bracket_score(lambda counts: counts.recall), task=TREES)
COMPLETE_MATCH = Metric("Complete match", _bracket_score(lambda counts: counts.complete_match), task=TREES)
