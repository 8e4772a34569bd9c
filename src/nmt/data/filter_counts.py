"""What each filter of a split took out and what it left, as the records of its preparation say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LIMITS = {"words": "max_words", "ratio": "max_ratio", "pieces": "max_pieces"}
"""The setting that a filter's limit is."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """A step of the funnel."""

    name: str
    limit: str
    """Its setting with the value it had; empty for a filter without one."""
    dropped: int
    left: int
    share: float
    """Of what was read."""


def funnel(records: Mapping[str, Any], split: str = "train") -> list[Filtered]:
    """What was read, then each filter in its order, the tokenizer's own limit last."""
    collected, encoded = records[f"collect {split}"], records[f"encode {split}"]
    limits = {**collected["inputs"].get("filters", {}), "max_pieces": encoded["inputs"]["max_pieces"]}
    left = read = collected["result"]["read"]
    steps = [Filtered("read", "", 0, read, 1.0)]
    for name, dropped in {**collected["result"]["dropped"], **encoded["result"]["dropped"]}.items():
        key = LIMITS.get(name)
        left -= dropped
        steps.append(Filtered(name, f"data.{key}={limits[key]}" if key else "", dropped, left, left / max(read, 1)))
    return steps
