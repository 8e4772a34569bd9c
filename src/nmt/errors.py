"""What a user can put right, said in one line."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """Something the user can mend: what is wrong, where, and what to do.

    The command line prints the message alone, without a traceback, and leaves with exit code 2.
    """


class CommonError(UserError):
    """One that all processes of a run meet alike, so that it is enough if the first of them says it."""


class ConfigError(CommonError):
    """A setting that is wrong in itself or contradicts another."""


def nearest(word: str, choices: Iterable[str]) -> str:
    """Say which of `choices` the user may have meant: a clause to append to an error message."""
    known = sorted(choices)
    close = get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]}?"
    return f"choose from {', '.join(known)}"
