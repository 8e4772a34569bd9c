"""What Table 3 shows: how far its order agrees with the paper's, and which rows differ from base by more than luck."""

import math
from collections.abc import Mapping, Sequence
from statistics import correlation, fmean

from nmt.paper.table3 import TABLE_3

LogPerplexities = Mapping[str, Sequence[float]]
"""Logarithms of the perplexities of each row, one per seed; not empty."""


def findings(perplexities: Mapping[str, Sequence[float]]) -> list[str]:
    """Return sentences about the perplexities of the rows, one per seed."""
    logs = {name: [math.log(each) for each in found] for name, found in perplexities.items() if found}
    return [line for line in (_agreement(logs), _differences(logs)) if line]


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation of two columns; equal values share their mean rank."""
    return correlation(_ranks(first), _ranks(second))


def pooled_spread(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the standard deviation within groups, or None if none has two values.

    Few seeds estimate the deviation of their own group badly, so that all groups share one estimate.
    """
    freedom = sum(len(group) - 1 for group in groups)
    squares = sum((value - fmean(group)) ** 2 for group in groups for value in group)
    return math.sqrt(squares / freedom) if freedom else None


def _ranks(values: Sequence[float]) -> list[float]:
    return [sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
            for value in values]  # fmt: skip


def _agreement(logs: LogPerplexities) -> str:
    """Compare the order of the rows with that of the paper."""
    ours = [fmean(found) for found in logs.values()]
    if len(set(ours)) < 3:
        return ""
    found = spearman(ours, [TABLE_3[name].perplexity for name in logs])
    return f"Spearman's rank correlation with the paper's perplexities, over {len(logs)} rows: {found:.2f}."


def _differences(logs: LogPerplexities) -> str:
    """Say which rows differ from base by more than twice the standard error of the difference."""
    spread = pooled_spread(list(logs.values()))
    if "base" not in logs or len(logs) < 2:
        return ""
    if not spread:
        return "One seed per row cannot tell a difference from luck: table3.seeds=3 measures the spread of seeds."
    gaps = {
        name: (fmean(found) - fmean(logs["base"])) / (spread * math.sqrt(1 / len(found) + 1 / len(logs["base"])))
        for name, found in logs.items()
        if name != "base"
    }
    better, worse = ([name for name, gap in gaps.items() if sign * gap > 2] for sign in (-1, 1))
    neither = [name for name in gaps if name not in (*better, *worse)]
    return (
        f"Seeds change the perplexity of a row by {100 * math.expm1(spread):.1f}% (standard deviation, pooled over the "
        f"rows with several seeds). Compared with base, by twice the standard error: better {_list(better)}; "
        f"worse {_list(worse)}; no clear difference {_list(neither)}."
    )


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
