"""What a service that draws the curves of a run, such as TensorBoard, hears of it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol


@dataclass(frozen=True, slots=True)
class Scored:
    """The results of an evaluation."""

    split: str
    """The split, prefixed with the name of the checkpoint if that is not the run's own (last/test)."""
    step: int
    """The step of the checkpoint."""
    scores: Mapping[str, float]
    signatures: Mapping[str, str]
    """The signature of each score."""
    translations: Sequence[tuple[str, str, str]]
    """Sources, translations and references of some sentences."""
    checkpoint: str
    """The name of the checkpoint or export that was scored."""


class Listener(Protocol):
    """Hears about a run in its main process.

    An exception of a method is a warning, because a listener must not stop a run.
    """

    service: ClassVar[str]
    """The name of the service, for warnings."""

    def log(self, event: str, step: int, fields: Mapping[str, Any]) -> None:
        """Hear of an event of training; after an exception, nothing more is said."""

    def log_scores(self, scored: Scored) -> None:
        """Hear of an evaluation."""

    def close(self, exit_code: int) -> None:
        """Hear of the end of the command."""


def tell_scored(listeners: Sequence[Listener], scored: Scored) -> None:
    """Report an evaluation to listeners."""
    for each in listeners:
        worked(each, each.log_scores, scored)


def worked(listener: Listener, method: Callable[..., None], *arguments: Any) -> bool:
    """Call a method of a listener; return False, and warn, if it fails."""
    try:
        method(*arguments)
    except Exception as error:
        warn_without(listener.service, error)
        return False
    return True


def warn_without(service: str, error: Exception) -> None:
    """Warn that a service does not work."""
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    print(
        f"warning: {service} does not work ({reason}); continuing without it; the run's own files contain everything",
        file=sys.stderr,
        flush=True,
    )
