"""What the server asks of the process of a model, what that answers, and how requests are refused."""

import contextlib
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nmt.decoding.translation import Request

Answer = dict[str, Any]
"""What a model answers for one sentence, ready for JSON."""
RETRY = {"Retry-After": "5"}
CLOSE = {"Connection": "close"}
"""The header after which a connection is closed: the rest of the request is not read."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to do with a sentence. Only sentences with equal tasks are translated together."""

    nbest: int = 1
    details: bool = False
    """Whether to add words with their probabilities, and attention."""
    choices: int = 0
    """Instead of translating, return this many words that are likely to follow the beginning."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences for one call of a model."""

    task: Task
    requests: list[Request]


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a sentence has no answer."""

    message: str
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the server knows of a model."""

    source: str
    target: str
    engine: str
    """The engine that translates, such as torch."""
    attention: bool
    """Whether details include attention, and likely words can be named."""
    terms: bool
    """Whether it can require terms."""
    hypotheses: int
    """Hypotheses per sentence of its search."""
    weights: tuple[str, ...]
    """The checksums of its weights, and the number format of an export."""


class RequestError(Exception):
    """A request that is refused, with the status and the one line that the client gets."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


class LostError(Exception):
    """The process of a model has ended, or has no answer in time, so a batch has no answers."""


def report_error(error: BaseException) -> None:
    """Print where an error happened, but not its message, which may contain the text of a client."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    log(f"{type(error).__name__} at {places}")


def log(message: str) -> None:
    """Print a line on standard error; the server goes on if that is impossible, for example on a full disk."""
    with contextlib.suppress(OSError, ValueError):
        print(f"nmt: serve: {message}", file=sys.stderr, flush=True)
