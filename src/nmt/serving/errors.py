"""The errors of the server: what clients get, and what is logged."""

import contextlib
import sys
import traceback
from collections.abc import Mapping

RESTART_SECONDS = 5
"""Seconds that clients are asked to wait while the process of a model is replaced."""
RETRY = {"Retry-After": str(RESTART_SECONDS)}
"""The header that says when to try again."""
CLOSE = {"Connection": "close"}
"""The header after which a connection is closed: the rest of the request is not read."""


class RequestError(Exception):
    """A request that is refused, with the status and the one line that the client gets."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})


class LostError(Exception):
    """The process of a model has ended, or has no answer in time, so a batch has no answers."""


def unavailable() -> RequestError:
    """Return the error for clients whose model has no process at the moment."""
    return RequestError(503, "the model is being restarted: try again", RETRY)


def too_many_sentences(most: int) -> RequestError:
    """Return the error for a request of more sentences than it may have."""
    return RequestError(413, f"a request may not have more than {most} sentences; a text without any counts as one")


def report_error(error: BaseException) -> None:
    """Print where an error happened, but not its message, which may contain the text of a client."""
    frames = traceback.extract_tb(error.__traceback__)
    places = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    log(f"{type(error).__name__} at {places}")


def log(message: str) -> None:
    """Print a line on standard error; the server goes on if that is impossible, for example on a full disk."""
    with contextlib.suppress(OSError, ValueError):
        print(f"nmt: serve: {message}", file=sys.stderr, flush=True)
