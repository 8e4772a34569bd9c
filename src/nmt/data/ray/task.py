"""What a worker of Ray does: make the function once, apply it to items."""

import socket
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

from nmt import __version__
from nmt.errors import UserError

KEPT_FUNCTIONS = 4
"""Functions that a worker keeps, because the filters and the encoder of several stages may alternate."""


class Task(NamedTuple):
    """What makes the function, and the versions that it belongs to."""

    make: Callable[..., Callable[[Any], Any]]
    args: tuple[Any, ...]
    versions: dict[str, str]
    purpose: str


_made: dict[str, Callable[[Any], Any]] = {}


def versions(*further: str) -> dict[str, str]:
    """Return the versions of everything on which the prepared text depends, and of further packages."""
    packages = {name: version(name).partition("+")[0] for name in ("sentencepiece", "numpy", *further)}
    return {"nmt": __version__, "Python": f"{sys.version_info.major}.{sys.version_info.minor}", **packages}


def run_task(task: Task, key: str, packed: tuple[Any]) -> Any:
    """Return what the function of a task, which has a key of its own, returns for the item in a tuple."""
    if key not in _made:
        check_versions(task.versions, versions())
        if len(_made) == KEPT_FUNCTIONS:
            _made.pop(next(iter(_made)))
        _made[key] = task.make(*task.args)
    (item,) = packed
    return _made[key](item)


def check_versions(wanted: dict[str, str], found: dict[str, str]) -> None:
    """Refuse a worker with other versions than those of the process that sends the text."""
    for name, each in wanted.items():
        if found[name] != each:
            raise UserError(
                f"the Ray worker on {socket.gethostname()} has {name} {found[name]}, but {each} is here: "
                "install the same versions on all machines"
            )
