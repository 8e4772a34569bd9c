"""The setting of the filter that compares numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NumberData:
    """Whether numbers are compared."""

    match_numbers: bool = False
    """Drop training pairs whose sides have different numbers, written as digits."""
