"""What the translation of a sentence must contain."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the translation of a sentence must contain, as token ids."""

    forced: tuple[int, ...] = ()
    """The tokens with which it begins."""
    last_word: tuple[int, ...] = ()
    """Tokens after these; others that spell the same text, or longer words with this beginning, may stand there."""
    word_ends: bool = False
    """Whether the word before must not go on."""
    terms: tuple[tuple[int, ...], ...] = ()
    """Sequences of tokens that must stand in it."""

    @property
    def beginning(self) -> tuple[int, ...]:
        """The tokens of its beginning as the tokenizer splits them."""
        return self.forced + self.last_word

    @property
    def tokens(self) -> int:
        """The number of tokens in its beginning and its terms."""
        return len(self.beginning) + sum(map(len, self.terms))


UNCONSTRAINED = Constraints()
