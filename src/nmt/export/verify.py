"""Compare an export, in the program that it is for, with the model that it was made from."""

from collections.abc import Sequence
from typing import NamedTuple

from nmt.decoding.engine import Engine
from nmt.errors import UserError
from nmt.export.target import Reader
from nmt.text.special import UNKNOWN_MARK

MIN_IDENTICAL = {"float32": 0.9, "int8": 0.5}
"""The smallest share of the sample whose translations must be identical: beam searches end in different ways."""
MAX_DIFFERENCE = {"float32": 1e-3, "int8": 0.1}
"""The largest mean difference allowed between log-probabilities of word pieces."""


class Verification(NamedTuple):
    """How an export compares with the model when both search in the same way."""

    ours: list[str]
    """The model's translations."""
    theirs: list[str]
    """The export's translations."""
    difference: float
    """Mean absolute difference between log-probabilities of translations, per word piece."""

    @property
    def different(self) -> list[tuple[str, str]]:
        """Pairs of translations that differ, but for unknown words, which some programs leave out."""
        pairs = zip(self.ours, self.theirs, strict=True)
        return [pair for pair in pairs if _known(pair[0]) != _known(pair[1])]

    def __str__(self) -> str:
        every = len(self.ours)
        same = every - len(self.different)
        return (
            f"{same:,} of {every:,} translations identical ({same / every:.1%}), "
            f"log-probabilities of word pieces differ by {self.difference:.1e}"
        )


def _known(text: str) -> list[str]:
    return text.replace(UNKNOWN_MARK, " ").split()


def verify(model: Engine, export: Reader, lines: Sequence[str], quantization: str) -> Verification:
    """Translate lines with both, and score the model's translations with both; refuse an export that differs."""
    ours, theirs = [each.text for each in model.translate(lines)], export.translate(lines)
    scored = list(zip(model.score(lines, ours), export.score(lines, ours), strict=True))
    gap = sum(abs(one.log_probability - other) for one, other in scored)
    found = Verification(ours, theirs, gap / sum(one.tokens for one, _ in scored))
    allowed = max(1, round(len(lines) * (1 - MIN_IDENTICAL[quantization])))
    if len(found.different) > allowed or not found.difference <= MAX_DIFFERENCE[quantization]:
        example = "".join(f"; {one!r} became {other!r}" for one, other in found.different[:1])
        raise UserError(
            f"the export was deleted because it does not translate as the model does: {found}{example}. "
            "Train longer if the model has seen few steps (ties are common then), or try another export.target"
        )
    return found
