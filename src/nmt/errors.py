"""Errors that the user can fix, each with a message of one line."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """An error that the user can fix: what is wrong, where, and what to do.

    The command line prints only the message, without a traceback, and exits with code 2.
    """


class CommonError(UserError):
    """An error that every process of a run meets, so only the first process prints it."""


class ConfigError(CommonError):
    """A setting that is invalid or contradicts another setting."""


class LimitError(UserError):
    """Something that would need more memory or time than it may."""


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return a suggestion for an error message: the most similar choice, or all choices."""
    known = sorted(choices)
    close = get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]}?"
    return f"choose from {', '.join(known)}"
