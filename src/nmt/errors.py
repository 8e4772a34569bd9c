"""Errors that the user can fix, each with a message of one line."""

import errno
import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path

USER_ERROR, INTERRUPTED, CLOSED_PIPE = 2, 130, 141
"""Exit codes; the last two are those of a process that SIGINT or SIGPIPE ended."""


class UserError(Exception):
    """An error that the user can fix: what is wrong, where, and what to do.

    The command line prints only the message, without a traceback, and exits with code 2.
    """

    def __str__(self) -> str:
        """Return the message, which names the commands that there are."""
        return for_this_installation(super().__str__())


class CommonError(UserError):
    """An error that every process of a run meets, so only the first process prints it."""


class ConfigError(CommonError):
    """A setting that is invalid or contradicts another setting."""


def explained(error: BaseException) -> UserError | None:
    """Return an error that the user can fix, or None: one of this kind, or that a file or folder cannot be used."""
    if isinstance(error, UserError):
        return error
    if isinstance(error, OSError) and error.filename is not None:
        return UserError(
            f"cannot use {error.filename}: {error.strerror}. Check its name, the permissions of the folders above it, "
            "and the free space."
        )
    if is_full_disk(error):
        return UserError("cannot write the output: the disk is full. Free some space.")
    return None


def is_full_disk(error: BaseException) -> bool:
    """Return whether an error is that of a full disk and names no file, as that of standard output."""
    return isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return a suggestion for an error message: the most similar choice, or all choices."""
    known = sorted(choices)
    spellings = {each.casefold(): each for each in reversed(known)}
    close = get_close_matches(word.casefold(), spellings, n=1, cutoff=0.6 if len(word) > 2 else 0.5)
    if close:
        return f"did you mean {spellings[close[0]]}?"
    return f"choose from {', '.join(known)}"


@cache
def has_makefile() -> bool:
    """Return whether this package runs in a clone, whose Makefile has a target for each command."""
    return (Path(__file__).resolve().parents[2] / "Makefile").is_file()


def for_this_installation(text: str) -> str:
    """Return a text for the user that names `nmt` in place of `make` if there is no Makefile of the project."""
    if has_makefile():
        return text
    return re.sub(r"`make (\w+)", r"`nmt \1", text).replace("(with the same ARGS)", "(with the same settings)")
