"""What Table 3 shows: how far its order and its effects agree with the paper's."""

import math
from collections.abc import Sequence
from statistics import correlation, fmean

from nmt.evaluation.paper_table3 import TABLE_3
from nmt.table3.effects import CLEAR, Effect, Perplexities, effects, logarithms, pooled_spread


def findings(perplexities: Perplexities) -> list[str]:
    """Return sentences about the perplexities of the rows."""
    logs = logarithms(perplexities)
    spread = pooled_spread(list(logs.values()))
    return [line for line in (_order(logs), _signs(effects(perplexities), spread)) if line]


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation of two columns; equal values share their mean rank."""
    return correlation(_ranks(first), _ranks(second))


def _ranks(values: Sequence[float]) -> list[float]:
    return [sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2
            for value in values]  # fmt: skip


def _order(logs: Perplexities) -> str:
    """Compare the order of the rows with that of the paper."""
    ours = [fmean(found) for found in logs.values()]
    if len(set(ours)) < 3:
        return ""
    found = spearman(ours, [TABLE_3[name].perplexity for name in logs])
    return f"Spearman's rank correlation with the paper's perplexities, over {len(logs)} rows: {found:.2f}."


def _signs(found: Sequence[Effect], spread: float | None) -> str:
    """Say how many rows have an effect that is more than luck, and the paper's sign."""
    if not found:
        return ""
    if not spread:
        return "One seed per row cannot tell an effect from luck: table3.seeds=3 measures the spread of seeds."
    clear = [each for each in found if each.is_clear]
    others = [each.row for each in clear if each.paper and not each.has_the_papers_sign]
    return (
        f"Seeds change the perplexity of a row by {100 * math.expm1(spread):.1f}% (standard deviation, pooled over the "
        f"rows with several seeds). {len(clear)} of {len(found)} effects are larger than {CLEAR} times their standard "
        f"error; of these, {', '.join(others) or 'none'} have another sign than in the paper."
    )
