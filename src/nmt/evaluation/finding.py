"""What an evaluation finds besides scores, such as counts of faults: see `Feature.findings`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from nmt.config.decoding import EvaluationConfig
from nmt.config.registry import imported
from nmt.decoding.engine import Engine
from nmt.discovery import features
from nmt.evaluation.split import Split

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TranslatedSplit:
    """A split with its translations, in which something may be found."""

    engine: Engine
    """The engine that has translated it."""
    split: Split
    target_lang: str
    hypotheses: Sequence[str]
    """The translations as the engine has returned them."""
    settings: EvaluationConfig


class Finding(ABC, Generic[T]):
    """One kind of finding."""

    def prepare(self, split: Split) -> None:
        """Fail before hours of translation if the files beside a split cannot be used."""

    @abstractmethod
    def find(self, translated: TranslatedSplit) -> T | None:
        """Return what is found; None if there is nothing to look for. All processes call this with the same split."""

    @abstractmethod
    def to_json(self, found: T) -> object:
        """Return the value in eval/<split>.json."""

    @abstractmethod
    def from_json(self, content: Any) -> T:
        """Read the value in eval/<split>.json; raise KeyError, TypeError or ValueError if it is damaged."""

    @abstractmethod
    def line(self, found: T) -> str:
        """Return the line that `eval` prints."""


class Findings(dict[str, object]):
    """What was found, by key in eval/<split>.json."""

    def to_json(self) -> dict[str, object]:
        """Return the values in eval/<split>.json."""
        return {name: _finding(name).to_json(found) for name, found in self.items()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Findings":
        """Read the findings in the content of eval/<split>.json; ignore those of features that are not there."""
        return cls({name: _finding(name).from_json(content[name]) for name in _codes() if content.get(name)})

    def lines(self) -> Iterator[str]:
        """Yield the lines that `eval` prints."""
        return (_finding(name).line(found) for name, found in self.items())


def find_all(translated: TranslatedSplit) -> Findings:
    """Return all that features find."""
    found = {name: _finding(name).find(translated) for name in _codes()}
    return Findings({name: each for name, each in found.items() if each is not None})


def prepare_findings(split: Split) -> None:
    """Fail before hours of translation if the files beside a split cannot be used."""
    for name in _codes():
        _finding(name).prepare(split)


def _codes() -> dict[str, str]:
    return {name: code for feature in features().values() for name, code in feature.findings.items()}


def _finding(name: str) -> Finding[Any]:
    found: Finding[Any] = imported(_codes()[name])
    return found
