"""What is asked of a translation: the line, how its translation begins, and the terms that must stand in it."""

from dataclasses import dataclass


def check_is_text(text: object) -> None:
    """Refuse everything but text."""
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.80} is no text but has the type {type(text).__name__}")


@dataclass(frozen=True, slots=True)
class Request:
    """A line to translate, and what its translation must contain."""

    text: str
    beginning: str = ""
    """The text with which the translation begins. Its last word may go on."""
    terms: tuple[str, ...] = ()
    """Words or phrases of the target language that must stand in the translation, besides those of the glossary."""

    def __post_init__(self) -> None:
        """Refuse other types, and a text in place of several terms: its letters would be terms."""
        for text in (self.text, self.beginning):
            check_is_text(text)
        if isinstance(self.terms, str):
            raise TypeError("terms are a tuple of texts, not a single text: terms=(text,)")
