"""What each row of Table 3 does to the perplexity of base, with its standard error, and the same in the paper."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from nmt.evaluation.paper_table3 import TABLE_3

Perplexities = Mapping[str, Sequence[float]]
"""The perplexities of each row, one per seed."""
CLEAR = 2
"""Standard errors beyond which a difference is more than luck."""


class Effect(NamedTuple):
    """What a row changes."""

    row: str
    size: float
    """The logarithm of its mean perplexity divided by that of base; below 0 if the row is better."""
    error: float | None
    """The standard error of `size`; None without a row that has several seeds."""
    paper: float
    """The size of the effect in the paper."""

    @property
    def is_clear(self) -> bool:
        """Whether the effect is more than luck."""
        return self.error is not None and abs(self.size) > CLEAR * self.error

    @property
    def has_the_papers_sign(self) -> bool:
        """Whether the row is better here if it is better in the paper, and worse if it is worse."""
        return self.size * self.paper > 0


def logarithms(perplexities: Perplexities) -> dict[str, list[float]]:
    """Return the logarithms of the perplexities of the rows that have some."""
    return {name: [math.log(each) for each in found] for name, found in perplexities.items() if found}


def effects(perplexities: Perplexities) -> list[Effect]:
    """Return the effects of the rows that have results, if base has some."""
    logs = logarithms(perplexities)
    spread, base = pooled_spread(list(logs.values())), logs.pop("base", None)
    if base is None:
        return []
    return [
        Effect(
            name,
            fmean(found) - fmean(base),
            spread and spread * math.sqrt(1 / len(found) + 1 / len(base)),
            math.log(TABLE_3[name].perplexity / TABLE_3["base"].perplexity),
        )
        for name, found in logs.items()
    ]


def pooled_spread(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the standard deviation within groups, or None if none has two values.

    Few seeds estimate the deviation of their own group badly, so that all groups share one estimate.
    """
    freedom = sum(len(group) - 1 for group in groups)
    squares = sum((value - fmean(group)) ** 2 for group in groups for value in group)
    return math.sqrt(squares / freedom) if freedom else None
