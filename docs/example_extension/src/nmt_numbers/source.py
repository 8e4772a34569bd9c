"""Numbers as digits on the source side, and digit by digit in words on the target side."""

import random
from collections.abc import Iterator

from nmt.config.schema import DataConfig
from nmt.data.sources.source import Fingerprint, Pair, Source

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PAIRS = {"train": 4000, "valid": 100, "test": 100}
VERSION = 1
"""Increased if the text changes, so that it is prepared again."""


def pairs(_: DataConfig, split: str) -> Iterator[Pair]:
    """Yield the pairs of a split."""
    chance = random.Random(split)
    for _number in range(PAIRS[split]):
        digits = [chance.randrange(10) for _digit in range(chance.randint(2, 8))]
        yield " ".join(map(str, digits)), " ".join(WORDS[digit] for digit in digits)


def fingerprint(_: DataConfig, split: str) -> Fingerprint:
    """Identify a split."""
    return {"numbers": VERSION, "split": split}


SOURCE = Source(fingerprint, pairs)
