"""The metrics of linearised trees, declared without the library of trees: `scores` computes them."""

from collections.abc import Callable

from nmt.config.data import TREES
from nmt.config.tree import Config
from nmt.evaluation.metric import Metric, Score, Translated

PAPER_F1 = {"parsing/wsj": 91.3, "parsing/wsj_semi": 92.7}
"""Table 4 of the paper: F1 on section 23, by experiment."""


def paper_f1(config: Config, split: str) -> float | None:
    """Return the paper's bracket F1 of this experiment, or None if it has none."""
    return PAPER_F1.get(config.name) if split == "test" else None


def _score_of(figure: str) -> Callable[[Translated], Score]:
    """Return a function that computes a figure of `nmt.parsing.bracket_score.BracketCounts`."""

    def score(text: Translated) -> Score:
        from nmt.parsing.scores import bracket_score  # noqa: PLC0415 - only trees need the library

        return bracket_score(text, figure)

    return score


F1 = Metric("Bracket F1", _score_of("f1"), task=TREES, paper="nmt.parsing.metrics:paper_f1")
PRECISION = Metric("Bracket precision", _score_of("precision"), task=TREES)
RECALL = Metric("Bracket recall", _score_of("recall"), task=TREES)
COMPLETE_MATCH = Metric("Complete match", _score_of("complete_match"), task=TREES)
