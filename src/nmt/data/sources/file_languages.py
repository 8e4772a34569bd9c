"""The languages that the names of files say."""

import re
from collections.abc import Sequence
from itertools import takewhile

from nmt.config.schema import DataConfig
from nmt.data.sources.source import Languages

_PARTS = re.compile(r"[^./_-]+|[./_-]")
"""The words of a name, and what separates them."""
_CODE = re.compile(r"[a-z]{2}([-_]([A-Z]{2}|[A-Z][a-z]{3}))?|[a-z]{3}[-_][A-Z][a-z]{3}")
"""A language of two letters, with a region or script or without, or one of three letters with a script: many endings
of files, such as txt, have three letters."""


def named_languages(config: DataConfig) -> Languages | None:
    """Return the languages after which the two files of the training text are named; None if they are not."""
    return languages_in_names(*config.train) if config.source == "files" and len(config.train) == 2 else None


def languages_in_names(source: str, target: str) -> Languages | None:
    """Return the languages by which the names of two files differ, as train.en and train.pt-BR do; None if none do."""
    parts = [_PARTS.findall(name) for name in (source, target)]
    start = _count_equal(*parts)
    end = _count_equal(*(each[start:][::-1] for each in parts))
    first, second = ("".join(each[start : len(each) - end]) for each in parts)
    return (first, second) if _CODE.fullmatch(first) and _CODE.fullmatch(second) else None


def _count_equal(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many items at the beginning are equal."""
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(first, second, strict=False)))
