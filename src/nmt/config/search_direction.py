"""Whether the lowest or the highest result of a run is the best."""

LOWER_IS_BETTER = ("loss", "nll", "perplexity", "ter")
"""Metrics of which the lowest is the best, whatever the split; of all others, the highest."""


def lower_is_better(metric: str) -> bool:
    """Return whether the lowest result of a metric, such as loss or test.ter, is the best."""
    return metric.rpartition(".")[2] in LOWER_IS_BETTER


def direction_of(metric: str) -> str:
    """Return what a search does with a metric, in Optuna's words."""
    return "minimize" if lower_is_better(metric) else "maximize"
