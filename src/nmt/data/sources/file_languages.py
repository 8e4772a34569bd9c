"""The languages that the names of files say."""

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from nmt.config.data import DataConfig
from nmt.config.folders import expanded, is_address
from nmt.data.sources.files import ONE_SIDED, kind_of, uncompressed_name
from nmt.data.sources.source import Languages

_WITH_REGION = r"[a-z]{2}[-_]([A-Z]{2}|[0-9]{3}|[A-Z][a-z]{3})|[a-z]{3}[-_][A-Z][a-z]{3}"
_CODE = re.compile(rf"[a-z]{{2}}|{_WITH_REGION}")
"""A language of two letters, with a region or script or without, or one of three letters with a script: many endings
of files, such as txt, have three letters."""
_PARTS = re.compile(rf"(?:^|(?<=[./_-]))(?:{_WITH_REGION})(?=[./_-]|$)|[^./_-]+|[./_-]")
"""The codes and words of a name, and what separates them."""


def named_languages(config: DataConfig) -> Languages | None:
    """Return the languages after which the files of a text are named that hold one side each; None if they are not."""
    for names in (config.train, config.valid, config.test):
        if config.source == "files" and len(names) == 2 and all(map(has_one_side, names)):
            return languages_in_names(*names)
    return None


def has_one_side(name: str) -> bool:
    """Return whether a name of text is that of a file with one side, in a format without columns."""
    return kind_of(Path(name)) in ONE_SIDED and (is_address(name) or not expanded(name).is_dir())


def languages_in_names(source: str, target: str) -> Languages | None:
    """Return the languages by which the names of two files differ, or with which they end; None if they say none.

    Examples are train.en and train.pt-BR, en/text.txt and ja/text.txt.
    """
    names = [str(uncompressed_name(Path(name))) for name in (source, target)]
    parts = [[found[0] for found in _PARTS.finditer(name)] for name in names]
    start = _count_equal(*parts)
    end = _count_equal(*(each[start:][::-1] for each in parts))
    differing = ["".join(each[start : len(each) - end]) for each in parts]
    last = [each[-1] if each else "" for each in parts]
    for first, second in (differing, last):
        if first != second and _CODE.fullmatch(first) and _CODE.fullmatch(second):
            return first, second
    return None


def _count_equal(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many items at the beginning are equal."""
    return sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(first, second, strict=False)))
