"""Sections that features add to the page about a run (`Feature.sections`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from jinja2 import Environment, PackageLoader, StrictUndefined

from nmt.config.registry import imported
from nmt.config.tree import Config
from nmt.discovery import features


@dataclass(frozen=True, slots=True)
class Absent:
    """The reason why a part of the page is missing."""

    reason: str


class TranslatedLines(Protocol):
    """A split with its translations, line by line."""

    @property
    def sources(self) -> Sequence[str]:
        """The source sentences, without tags."""

    @property
    def references(self) -> Sequence[str]:
        """The first reference of each sentence."""

    @property
    def hypotheses(self) -> Sequence[str]:
        """The translations."""


@dataclass(frozen=True, slots=True)
class ShownRun:
    """What the page knows about a run."""

    config: Config
    """The settings that it was trained with."""
    translations: Mapping[str, TranslatedLines | Absent]
    """The splits that have scores, test first."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page."""

    name: str
    """Its anchor."""
    title: str
    body: str
    """HTML, in which all text is escaped."""
    style: str = ""
    """CSS, which may use the colours of the page."""


def added_sections(run: ShownRun) -> list[Section]:
    """Return the sections that features have for a run; their functions return None if they have none."""
    found = [imported(code)(run) for feature in features().values() for code in feature.sections]
    return [section for section in found if section is not None]


def templates_of(package: str) -> Environment:
    """Return the templates of a package, which escape what they are given and have no value that is missing."""
    return Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
