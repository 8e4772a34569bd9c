"""Compare an export with the model that it was made from."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from tqdm import tqdm

from nmt.decoding.engine import Engine
from nmt.errors import UserError
from nmt.evaluation.metric import corpus_score

MIN_IDENTICAL = {"float32": 0.98, "int8": 0.5}
"""The smallest share of the sample whose translations must be identical; exact exports differ only in ties."""
MAX_DIFFERENCE = {"float32": 1e-3, "int8": 0.1}
"""The largest mean difference allowed between log-probabilities of word pieces."""


@dataclass(frozen=True, slots=True)
class Verification:
    """How an export compares with the model when both search in the same way."""

    ours: list[str]
    """The model's translations."""
    theirs: list[str]
    """The export's translations."""
    difference: float
    """Mean absolute difference between log-probabilities of word pieces."""
    client: list[str] | None = None
    """The translations of the program that the export is made for, if it searches in another way."""

    @property
    def of_users(self) -> list[str]:
        """The translations that users of the export get."""
        return self.theirs if self.client is None else self.client

    @property
    def sentences(self) -> int:
        """The number of sentences translated."""
        return len(self.ours)

    @property
    def same(self) -> int:
        """The number of identical translations."""
        return self.sentences - len(self.different)

    @property
    def different(self) -> list[tuple[str, str]]:
        """Pairs of translations that differ: the model's and the export's."""
        return [pair for pair in zip(self.ours, self.theirs, strict=True) if pair[0] != pair[1]]

    def __str__(self) -> str:
        return (
            f"{self.same:,} of {self.sentences:,} translations identical ({self.same / self.sentences:.1%}), "
            f"log-probabilities of word pieces differ by {self.difference:.1e}{self._client_in_words}"
        )

    @property
    def _client_in_words(self) -> str:
        if self.client is None:
            return ""
        same = sum(our == their for our, their in zip(self.ours, self.client, strict=True))
        return f"; with the client's own search {same:,} identical ({same / self.sentences:.1%})"


@dataclass(frozen=True, slots=True)
class Quality:
    """BLEU and chrF of the same sentences, translated by the model as `eval` does and by the export as users do."""

    model_bleu: float
    export_bleu: float
    model_chrf: float
    export_chrf: float

    def __str__(self) -> str:
        return (
            f"BLEU {self.export_bleu:.2f} instead of {self.model_bleu:.2f} "
            f"({self.export_bleu - self.model_bleu:+.2f}), "
            f"chrF {self.export_chrf:.2f} instead of {self.model_chrf:.2f} ({self.export_chrf - self.model_chrf:+.2f})"
        )


def verify(model: Engine, export: Engine, lines: Sequence[str]) -> Verification:
    """Translate lines with both, and score the model's translations with both."""
    ours, theirs = (_translate(engine, lines, who) for engine, who in ((model, "the model"), (export, "the export")))
    scored = zip(model.score(lines, ours), export.score(lines, ours), strict=True)
    gaps = [(abs(one.log_probability - other.log_probability), one.tokens) for one, other in scored]
    return Verification(ours, theirs, difference=sum(gap for gap, _ in gaps) / sum(tokens for _, tokens in gaps))


def _translate(engine: Engine, lines: Sequence[str], who: str) -> list[str]:
    """Return translations, with a progress bar on a terminal."""
    with tqdm(total=len(lines), desc=f"verifying: {who}", unit=" sentences", leave=False, disable=None) as bar:
        return [each.text for each in engine.translate(lines, done=bar.update)]


def accept(found: Verification, quantization: str) -> None:
    """Refuse an export that translates differently from the model."""
    allowed = max(1, round(found.sentences * (1 - MIN_IDENTICAL[quantization])))
    if len(found.different) > allowed or not found.difference <= MAX_DIFFERENCE[quantization]:
        example = "".join(f"; {one!r} became {other!r}" for one, other in found.different[:1])
        raise UserError(
            f"the export was deleted because it does not translate as the model does: {found}{example}. "
            "Train longer if the model has seen few steps (ties are common then), or try another export.target"
        )


def compare_quality(model: Sequence[str], export: Sequence[str], references: Sequence[str], bleu: BLEU) -> Quality:
    """Score the model's and the export's translations of the same sentences."""
    return Quality(
        *(
            corpus_score(metric, translations, [references]).score
            for metric in (bleu, CHRF())
            for translations in (model, export)
        )
    )
