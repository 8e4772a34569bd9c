"""An export is done when it translates as the model does."""

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.decoding.engine import Engine
from nmt.errors import UserError

SAME = {"float32": 0.98, "int8": 0.5}
"""Least share of the sample that must be translated alike; the rest of exact exports are ties."""
DIFFERENCE = {"float32": 1e-3, "int8": 0.1}
"""Most that the log-probability of a word piece may differ, in the mean over the sample."""


@dataclass(frozen=True, slots=True)
class Verification:
    """How an export compares with the model that it was made from."""

    sentences: int
    same: int
    """Sentences translated alike, piece by piece."""
    difference: float
    """Mean difference of a word piece's log-probability."""
    examples: tuple[tuple[str, str], ...]
    """Some that are not alike: the model's translation, the export's."""

    def __str__(self) -> str:
        return (
            f"{self.same:,} of {self.sentences:,} sentences translated alike, "
            f"log-probabilities of word pieces {self.difference:.1e} apart"
        )


def verify(model: Engine, export: Engine, lines: Sequence[str]) -> Verification:
    """Translate lines with both, and let both say how probable the model's translations are."""
    ours, theirs = ([each.text for each in engine.translate(lines)] for engine in (model, export))
    scored = zip(model.score(lines, ours), export.score(lines, ours), strict=True)
    gaps = [(abs(one.log_probability - other.log_probability), one.tokens) for one, other in scored]
    unlike = [(one, other) for one, other in zip(ours, theirs, strict=True) if one != other]
    return Verification(
        sentences=len(lines),
        same=len(lines) - len(unlike),
        difference=sum(gap for gap, _ in gaps) / sum(tokens for _, tokens in gaps),
        examples=tuple(unlike[:3]),
    )


def accept(found: Verification, numbers: str) -> None:
    """Refuse an export that is another model."""
    allowed = max(1, round(found.sentences * (1 - SAME[numbers])))
    if found.sentences - found.same > allowed or not found.difference <= DIFFERENCE[numbers]:
        example = "".join(f"; {one!r} became {other!r}" for one, other in found.examples[:1])
        raise UserError(
            f"the export is not kept, for it translates otherwise than the model: {found}{example}. "
            "Train on if the model is still young (ties are common then), or try another export.target"
        )
