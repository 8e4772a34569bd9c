"""What the server asks of a model, and what the model answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nmt.config.tree import Config
from nmt.decoding.request import Request

Answer = dict[str, Any]
"""What a model answers for one sentence, ready for JSON."""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model comes from."""

    name: str
    config: Config
    folder: str
    """Folder of the model; empty for the model that the settings choose."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to do with a sentence. Only sentences with equal tasks are translated together."""

    nbest: int = 1
    beam: int | None = None
    """Hypotheses per sentence; None is the model's own number."""
    details: bool = False
    """Whether to add words with their probabilities, and attention."""
    alignments: bool = False
    """Whether to add the links between words."""
    choices: int = 0
    """Instead of translating, return this many words that are likely to follow the beginning."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences for one call of a model."""

    task: Task
    requests: list[Request]


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a sentence has no answer, or why a model is not loaded."""

    message: str
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What clients may know of a model."""

    source: str
    target: str
    engine: str
    """The engine that translates, such as torch."""
    device: str
    """The kind of device that it runs on."""
    attention: bool
    """Whether details include attention, and words can be aligned."""
    choices: bool
    """Whether it can name the words that are likely to come next."""
    terms: bool
    """Whether it can require terms."""
    hypotheses: int
    """Hypotheses per sentence of its own search."""
    weights: tuple[str, ...] = ()
    """What distinguishes its weights from others: their checksums, and the number format of an export."""
