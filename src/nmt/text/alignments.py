"""Word alignments, and their text in Pharaoh format.

`0-0 1-2` links the first source word to the first target word, and the second one to the third. In a gold alignment,
`1p2` is a link that may be found but need not be.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from nmt.errors import UserError
from nmt.text.lines import read_lines

Link = tuple[int, int]
"""The indices, from 0, of a source word and of a target word; spaces divide words."""
LINK = re.compile(r"(\d{1,6})([-p])(\d{1,6})", re.ASCII)


class GoldAlignment(NamedTuple):
    """The true alignment of a sentence pair."""

    sure: frozenset[Link]
    """Links that must be found."""
    possible: frozenset[Link]
    """Links that are not wrong, which include the sure ones."""

    def reversed(self) -> "GoldAlignment":
        """Return the alignment of the other direction of translation."""
        return GoldAlignment(*(frozenset((j, i) for i, j in links) for links in self))

    def after(self, words: int) -> "GoldAlignment":
        """Return the alignment of the same sentences with more words before the source."""
        return GoldAlignment(*(frozenset((i + words, j) for i, j in links) for links in self))


def write_links(links: Iterable[Link]) -> str:
    """Return links in Pharaoh format."""
    return " ".join(f"{source}-{target}" for source, target in links)


def write_gold(gold: GoldAlignment) -> str:
    """Return a gold alignment in Pharaoh format."""
    return " ".join(f"{i}{'-' if (i, j) in gold.sure else 'p'}{j}" for i, j in sorted(gold.possible))


def read_gold(line: str) -> GoldAlignment:
    """Read a gold alignment; raise ValueError if the line is not in Pharaoh format."""
    sure, possible = set[Link](), set[Link]()
    for text in line.split():
        match = LINK.fullmatch(text)
        if match is None:
            raise ValueError(f"{text[:20]!r} is no link such as 0-0 (sure) or 0p0 (possible)")
        link = int(match[1]), int(match[3])
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldAlignment(frozenset(sure), frozenset(possible))


def links_to_learn(gold: GoldAlignment) -> list[Link]:
    """Return the sure links, and the possible ones of target words without a sure one."""
    linked = {target for _, target in gold.sure}
    return sorted(gold.sure | {link for link in gold.possible if link[1] not in linked})


def read_alignments(path: Path) -> Iterator[GoldAlignment]:
    """Read a file with the gold alignment of a sentence pair on each line."""
    for number, line in enumerate(read_lines(path), 1):
        try:
            yield read_gold(line)
        except ValueError as error:
            raise UserError(f"{path}, line {number}: {error}") from error
