"""Compare the numbers in a sentence with those in its translation."""

import re
from unicodedata import decimal

_GROUPED = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d{1,3}(?:[.,'’ \u00a0\u066c\u2009\u202f]\d{3})+(?!\d)|\d+")
"""Digits, with or without separators between groups of thousands; India's groups have two digits, but for the last."""
_SECOND_DECIMAL_ZERO = re.compile(r"(?<=\d[.,]\d)0(?![.,]?\d)")


def same_numbers(source: str, target: str) -> bool:
    """Return whether both sides have the same numbers, in any order, as digits.

    As 1.50 may be written 1.5, but 8.30 may be a time, zeros in the second decimal place may be there or not.
    """
    return numbers_in(source) == numbers_in(target) or _short_numbers_in(source) == _short_numbers_in(target)


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text as plain digits, sorted.

    Separators of thousands and leading zeros are left out, and so are zeros: 8:00 equals 8. The digits on both sides of
    a decimal point or comma are two numbers, because languages write it differently.
    """
    found = (re.sub(r"\D", "", each) for each in _GROUPED.findall(text))
    plain = ("".join(str(decimal(digit)) for digit in each).lstrip("0") for each in found)
    return sorted(filter(None, plain))


def _short_numbers_in(text: str) -> list[str]:
    """Return the numbers of a text without zeros in the second decimal place."""
    return numbers_in(_SECOND_DECIMAL_ZERO.sub("", text))
