"""Whether a search looks for the lowest or the highest result."""

LOWER_IS_BETTER = ("loss", "nll", "perplexity", "ter")
"""Metrics of which the lowest is the best, whatever the split; of all others, the highest."""


def direction_of(metric: str) -> str:
    """Return what a search does with a metric, such as loss or test.ter, in Optuna's words."""
    return "minimize" if metric.rpartition(".")[2] in LOWER_IS_BETTER else "maximize"
