"""What is computed for the candidates of a translation after the search, such as the scores of their tokens."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from nmt.config.schema import Config, DecodingConfig, TranslateConfig
from nmt.decoding.request import Request
from nmt.discovery import features, imported

if TYPE_CHECKING:  # the server has no torch
    from nmt.decoding.beam import Hypothesis
    from nmt.decoding.engine import Engine


class TranslatedBlock(NamedTuple):
    """Lines that were translated together, and their candidates."""

    requests: Sequence[Request]
    sources: Sequence[Sequence[int]]
    """The token ids of each line, without special ids."""
    found: "Sequence[Sequence[Hypothesis]]"
    """The candidates of each line."""
    texts: Sequence[Sequence[str]]
    """The texts of the candidates."""

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each line with the text of each of its candidates."""
        return ((one.text, text) for one, texts in zip(self.requests, self.texts, strict=True) for text in texts)


class Detail(ABC):
    """Something to know of a candidate. Threads share it, so its methods do not change it."""

    @abstractmethod
    def compute(self, engine: "Engine", block: TranslatedBlock) -> Sequence[object]:
        """Return the value of each candidate of each line, one after the other."""


class DetailOption(Detail):
    """A detail that a setting asks for: see `Feature.details`."""

    setting: ClassVar[str]
    """The setting under `decoding.`, true or false."""
    refusal: ClassVar[str]
    """What a model does if its engine does not offer the detail, in words that follow its name."""

    def is_wanted(self, search: DecodingConfig) -> bool:
        """Return whether the settings of a search ask for it."""
        return bool(getattr(search, self.setting))

    def is_offered(self, engine: "Engine") -> bool:
        """Return whether an engine can compute it."""
        return True

    @abstractmethod
    def check(self, engine: "Engine") -> None:
        """Refuse settings that the engine cannot follow, before it translates."""

    def file(self, config: TranslateConfig) -> str:
        """Return the file that `translate` writes with a line for each best candidate; empty for none."""
        return ""

    def to_json(self, value: Any) -> object:
        """Return the value of a candidate as JSON holds it."""
        return value

    def line(self, value: Any) -> str:
        """Return the value of a candidate as a line of that file."""
        return str(value)


def all_details() -> Mapping[str, DetailOption]:
    """Return the details of all features by name."""
    return {name: imported(code) for feature in features().values() for name, code in feature.details.items()}


def wanted_details(engine: "Engine") -> dict[str, Detail]:
    """Return the details that the settings of an engine ask for; refuse what it cannot compute."""
    for detail in all_details().values():
        detail.check(engine)
    return {name: detail for name, detail in all_details().items() if detail.is_wanted(engine.config)}


def detail_files(config: TranslateConfig) -> dict[str, str]:
    """Return the files with details that `translate` writes, by the name of the detail."""
    return {name: file for name, detail in all_details().items() if (file := detail.file(config))}


def with_details_of_files(config: Config) -> Config:
    """Return the settings that ask for the details which `translate` writes to files."""
    asked = {all_details()[name].setting: True for name in detail_files(config.translate)}
    return replace(config, decoding=replace(config.decoding, **asked))  # type: ignore[arg-type]
