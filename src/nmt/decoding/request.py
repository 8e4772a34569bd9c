"""What is asked of a translation: the line, how its translation begins, and the terms that must stand in it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """A line to translate, and what its translation must contain."""

    text: str
    beginning: str = ""
    """The text with which the translation begins."""
    terms: tuple[str, ...] = ()
    """Words or phrases of the target language that must stand in the translation."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the translation of a sentence must contain, as token ids."""

    beginning: tuple[int, ...] = ()
    """The tokens with which it begins."""
    terms: tuple[tuple[int, ...], ...] = ()
    """Sequences of tokens that must stand in it."""


UNCONSTRAINED = Constraints()
