"""eval/<split>.json: the scores of a split and the checkpoint, decoding settings and machine behind them."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from nmt.config.decoding import DecodingConfig
from nmt.errors import UserError
from nmt.evaluation.alignment_error import AlignmentScore
from nmt.evaluation.metrics import Score
from nmt.parsing.linearise import Repairs
from nmt.runs.checkpoint import CheckpointRecord
from nmt.storage.files import read_json, record_of, write_json

MAX_NLL = 700.0
"""Largest negative log-likelihood whose perplexity is still a finite number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRecord:
    """The content of eval/<split>.json."""

    split: str
    scores: Mapping[str, Score]
    """Scores by the name of the metric."""
    sentences: int = 0
    seconds: float = 0.0
    """Time spent translating."""
    sentences_per_second: float = 0.0
    nll: float | None = None
    """Mean negative log-likelihood of the references per word piece, end marks included."""
    perplexity: float | None = None
    """Perplexity of the references per word piece."""
    corpus: str = ""
    languages: tuple[str, ...] = ()
    """Source and target language."""
    bleu_tokenizer: str = ""
    """The name of BLEU's tokenizer, which reports use, too."""
    decoding: DecodingConfig | None = None
    engine: str = "torch"
    machine: str = ""
    processes: int = 1
    checkpoint: CheckpointRecord | None = None
    alignments: AlignmentScore | None = None
    """How well the model aligns the references, if the true alignments are known."""
    repairs: Repairs | None = None
    """What was repaired before trees were scored; None if the target side is text."""

    def remarks(self) -> list[str]:
        """Return what there is to say besides scores, a line each."""
        alignments = f"word alignments of the references: {self.alignments}" if self.alignments else ""
        return list(filter(None, (alignments, f"repaired: {self.repairs}" if self.repairs else "")))

    def to_json(self) -> dict[str, object]:
        """Return the content of the file, whose first entries are the split and its scores."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return {"split": values.pop("split"), **values.pop("scores"), **values}


def perplexity(nll: float) -> float:
    """Return the perplexity of a mean negative log-likelihood."""
    return math.exp(min(nll, MAX_NLL))


def read_evaluation(file: Path) -> EvaluationRecord:
    """Read an eval/<split>.json; settings of the search that this version does not have are ignored."""
    content = read_json(file)
    try:
        scores = {name: value for name, value in content.items() if isinstance(value, dict) and "score" in value}
        if not scores:
            raise ValueError("there are no scores")
        return record_of(EvaluationRecord, {**content, "scores": scores})
    except (AttributeError, ValueError) as error:
        raise UserError(f"{file} holds no scores: run `make eval` to write it again") from error


def write_evaluation(file: Path, record: EvaluationRecord) -> None:
    """Write an eval/<split>.json."""
    write_json(file, record.to_json())
