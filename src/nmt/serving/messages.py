"""What the server asks of the process of a model, and what that answers."""

import contextlib
import sys
import traceback
from dataclasses import dataclass
from typing import Any

Answer = dict[str, Any]
"""What a model answers for one sentence, ready for JSON. A sentence without an answer has an HTTPException."""
RETRY = {"Retry-After": "5"}


@dataclass(frozen=True, slots=True)
class Task:
    """What to do with a sentence. Only sentences with equal tasks are translated together."""

    nbest: int = 1
    details: bool = False
    """Whether to add words with their probabilities, and attention."""
    choices: int = 0
    """Instead of translating, return this many words that are likely to follow the beginning."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the server knows of a model."""

    pid: int
    """The id of its process."""
    source: str
    target: str
    engine: str
    """The engine that translates, such as torch."""
    attention: bool
    """Whether details include attention, and likely words can be named."""
    hypotheses: int
    """Hypotheses per sentence of its search."""


def report_error(error: BaseException) -> None:
    """Print where an error happened, but not its message, which may contain the text of a client."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    log(f"{type(error).__name__} at {places}")


def log(message: str) -> None:
    """Print a line on standard error; the server goes on if that is impossible, for example on a full disk."""
    with contextlib.suppress(OSError, ValueError):
        print(f"nmt: serve: {message}", file=sys.stderr, flush=True)
