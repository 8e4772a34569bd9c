"""What each filter of a split took out and what it left, as the records of its preparation say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LIMITS = {"words": "max_words", "ratio": "max_ratio", "pieces": "max_pieces"}
"""The setting that a filter's limit is."""


@dataclass(frozen=True, slots=True)
class FilterCount:
    """A step of the funnel."""

    name: str
    limit: str
    """Its setting with the value it had; empty for a filter without one."""
    dropped: int
    left: int
    share: float
    """Of what was read."""


def filter_counts(records: Mapping[str, Any], split: str = "train") -> list[FilterCount]:
    """What was read, then each filter in its order, the tokenizer's own limit last."""
    collected, encoded = records[f"collect {split}"], records[f"encode {split}"]
    limits = {**collected["inputs"].get("filters", {}), "max_pieces": encoded["inputs"]["max_pieces"]}
    left = read = collected["result"]["read"]
    steps = [FilterCount("read", "", 0, read, 1.0)]
    for name, dropped in {**collected["result"]["dropped"], **encoded["result"]["dropped"]}.items():
        key = LIMITS.get(name)
        left -= dropped
        steps.append(FilterCount(name, f"data.{key}={limits[key]}" if key else "", dropped, left, left / max(read, 1)))
    return steps
