"""Words that know what they express, so that the words of both languages can be aligned.

An element of a sentence is named by its path in the sentence's tree, such as `first.part0.head` for the noun of the
first part of the first clause. Both languages name the same element alike.
"""

from typing import NamedTuple


class Word(NamedTuple):
    """A word of a sentence, or a comma until it is attached to a word."""

    text: str
    expresses: tuple[str, ...] = ()
    """The elements that it expresses; several if it is contracted, such as `im`."""
    belongs_to: str = ""
    """The element to which it belongs if the other language has no words for what it expresses."""


Words = tuple[Word, ...]
COMMA = Word(",")


def say(text: str, element: str, belongs_to: str = "") -> Words:
    """Return the words of a text, which all express one element."""
    return tuple(Word(word, (element,), belongs_to) for word in text.split())


def spelled(words: Words) -> str:
    """Return the text of words."""
    return " ".join(word.text for word in words)


def with_ending(words: Words, ending: str) -> Words:
    """Attach an ending to the last word."""
    return (*words[:-1], words[-1]._replace(text=words[-1].text + ending))


def merged(text: str, first: Word, second: Word) -> Word:
    """Return two words as one."""
    return Word(text, (*first.expresses, *second.expresses), second.belongs_to)
