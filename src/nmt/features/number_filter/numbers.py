"""Compare the numbers in a sentence with those in its translation."""

import re
from unicodedata import decimal

from nmt.data.filters import Filter, each_pair

_GROUPED = re.compile(r"\d{1,3}(?:[.,'’ \u00a0\u2009\u202f]\d{3})+(?!\d)|\d+")
"""Digits, with or without separators between groups of thousands."""


def same_numbers(source: str, target: str) -> bool:
    """Return whether both sides have the same numbers, in any order, as digits."""
    return numbers_in(source) == numbers_in(target)


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text as plain digits, sorted.

    Separators of thousands and leading zeros are left out, and so are zeros: 8:00 equals 8. The digits on both sides of
    a decimal point or comma are two numbers, because languages write it differently.
    """
    found = (re.sub(r"\D", "", each) for each in _GROUPED.findall(text))
    plain = ("".join(str(decimal(digit)) for digit in each).lstrip("0") for each in found)
    return sorted(filter(None, plain))


FILTER = Filter("numbers", "match_numbers", lambda _: each_pair(same_numbers))
