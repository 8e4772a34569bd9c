"""What the translation of a sentence must contain."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the translation of a sentence must contain, as token ids."""

    beginning: tuple[int, ...] = ()
    """The tokens with which it begins."""
    terms: tuple[tuple[int, ...], ...] = ()
    """Sequences of tokens that must stand in it."""

    @property
    def tokens(self) -> int:
        """The number of tokens in its beginning and its terms."""
        return len(self.beginning) + sum(map(len, self.terms))


UNCONSTRAINED = Constraints()
