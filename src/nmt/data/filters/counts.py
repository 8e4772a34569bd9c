"""The pairs that each filter dropped and left, from the records of preparation."""

from collections.abc import Mapping
from dataclasses import dataclass

from nmt.data.filters.pipeline import setting_of
from nmt.data.records import Manifest, collect_task, encode_task


@dataclass(frozen=True, slots=True)
class FilterCount:
    """The pairs that a filter dropped and those that it left."""

    name: str
    limit: str
    """The filter's setting and its value; empty if the filter has no limit."""
    dropped: int
    left: int
    share: float
    """Pairs left, relative to the pairs read."""


def filter_counts(manifest: Manifest, split: str = "train") -> list[FilterCount]:
    """Return the pairs read, then the counts of each filter in order; the tokenizer's own limit comes last."""
    collected, encoded = manifest.collected(split), manifest.encoded(split)
    filters = manifest.tasks[collect_task(split)].inputs.get("filters", {})
    limits = dict(filters) if isinstance(filters, Mapping) else {}
    limits["max_pieces"] = manifest.tasks[encode_task(split)].inputs["max_pieces"]
    left = collected.read
    counts = [FilterCount("read", "", 0, left, 1.0)]
    for name, dropped in {**collected.dropped, **encoded.dropped}.items():
        setting = setting_of(name)
        limit = limits.get(setting, False)
        left -= dropped
        shown = "" if isinstance(limit, bool) else f"data.{setting}={limit}"
        counts.append(FilterCount(name, shown, dropped, left, left / max(collected.read, 1)))
    return counts
