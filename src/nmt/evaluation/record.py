"""eval/<split>.json: the scores of a split and the checkpoint, decoding settings and machine behind them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from nmt.config.data import is_text
from nmt.config.decoding import DecodingConfig
from nmt.errors import UserError
from nmt.evaluation.alignment_error import AlignmentScore
from nmt.evaluation.metrics import Score
from nmt.parsing.linearise import Repairs
from nmt.runs.checkpoint import CheckpointRecord
from nmt.storage.files import read_json, record_of, write_json

REQUIRED_OF_TEXT = ("bleu", "bleu_paper", "chrf", "ter")
REQUIRED_OF_TREES = ("bracket_f1",)
"""The scores that every eval/<split>.json holds."""


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
    """Mean negative log-likelihood of the references per word piece."""
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
    """How well the model aligns the references."""
    repairs: Repairs | None = None
    """What was repaired before trees were scored."""

    def remarks(self) -> list[str]:
        """Return what there is to say besides scores, a line each."""
        alignments = f"word alignments of the references: {self.alignments}" if self.alignments else ""
        return list(filter(None, (alignments, f"repaired: {self.repairs}" if self.repairs else "")))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read the content of a file; raise KeyError, TypeError or ValueError if it holds no scores."""
        plain = ("sentences", "seconds", "sentences_per_second", "nll", "perplexity", "corpus", "engine", "machine",
                 "processes", "bleu_tokenizer")  # fmt: skip
        scores = {name: value for name, value in content.items() if isinstance(value, dict) and "score" in value}
        languages = tuple(content.get("languages", ()))
        required = REQUIRED_OF_TEXT if not languages or is_text(languages[1]) else REQUIRED_OF_TREES
        if missing := [name for name in required if name not in scores]:
            raise KeyError(missing[0])
        decoding, checkpoint = content.get("decoding"), content.get("checkpoint")
        return cls(
            split=str(content["split"]),
            scores={name: Score(float(each["score"]), str(each["signature"])) for name, each in scores.items()},
            languages=languages,
            decoding=None if decoding is None else _read_decoding(decoding),
            checkpoint=None if checkpoint is None else record_of(CheckpointRecord, checkpoint),
            alignments=AlignmentScore(**content["alignments"]) if content.get("alignments") else None,
            repairs=Repairs(**content["repairs"]) if content.get("repairs") else None,
            **{name: content[name] for name in plain if name in content},
        )

    def to_json(self) -> dict[str, object]:
        """Return the content of the file."""
        scores = {name: asdict(score) for name, score in self.scores.items()}
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values |= {
            "languages": list(self.languages),
            "decoding": None if self.decoding is None else asdict(self.decoding),
            "checkpoint": None if self.checkpoint is None else self.checkpoint.to_json(),
            "alignments": None if self.alignments is None else asdict(self.alignments),
            "repairs": None if self.repairs is None else asdict(self.repairs),
        }
        del values["split"], values["scores"]
        return {"split": self.split, **scores, **{name: value for name, value in values.items() if value is not None}}


def read_evaluation(file: Path) -> EvaluationRecord:
    """Read an eval/<split>.json."""
    try:
        return EvaluationRecord.from_json(read_json(file))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{file} holds no scores: run `make eval` to write it again") from error


def write_evaluation(file: Path, record: EvaluationRecord) -> None:
    """Write an eval/<split>.json."""
    write_json(file, record.to_json())


def _read_decoding(content: Mapping[str, Any]) -> DecodingConfig:
    """Read the settings of the search; ignore those that this version does not have."""
    known = {field.name for field in fields(DecodingConfig)}
    return DecodingConfig(**{name: value for name, value in content.items() if name in known})
