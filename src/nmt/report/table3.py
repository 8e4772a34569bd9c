"""Write Table 3 of the paper with our own results, at full or small scale."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.config.schema import Config
from nmt.errors import ConfigError, nearest
from nmt.estimate.parameters import count_parameters
from nmt.evaluation.record import read_evaluation
from nmt.paper.table3 import TABLE_3
from nmt.runs.layout import RunLayout
from nmt.runs.metrics import read_metrics
from nmt.runs.scores import scores_folder

COLUMNS = ("row", "change", "PPL", "paper", "BLEU", "BLEU, as the paper counts", "paper", "M params", "paper",
           "hours", "paper")  # fmt: skip

WIDTH_DIVISOR, LAYER_DIVISOR, STEP_DIVISOR = 8, 2, 320
"""The small scale divides widths, layers and steps by these."""


class RowResult(NamedTuple):
    """Our own results for a row."""

    perplexity: float
    bleu: float
    bleu_paper: float
    parameters: int
    hours: float


def choose_rows(names: Sequence[str]) -> list[str]:
    """Return the rows with these names, or all of them, in the paper's order."""
    for name in names:
        if name not in TABLE_3:
            raise ConfigError(f"table3.rows: the paper's Table 3 has no row {name}; {nearest(name, TABLE_3)}")
    return [name for name in TABLE_3 if not names or name in names]


def small_scale(row: Config) -> list[str]:
    """Return overrides that shrink a row in proportion, so that it still differs from base as in the paper."""
    model, training = row.model, row.training
    steps = training.steps // STEP_DIVISOR
    return [
        f"name={row.name.replace('table3/', 'table3-small/')}",
        "data=demo",
        "tokenizer.vocab_size=2000",
        f"model.layers={model.layers // LAYER_DIVISOR}",
        *(f"model.{name}={getattr(model, name) // WIDTH_DIVISOR}" for name in ("d_model", "d_ff", "d_k", "d_v")),
        f"training.steps={steps}",
        f"training.warmup_steps={max(1, training.warmup_steps // STEP_DIVISOR * 8)}",
        "training.batch_tokens=1024",
        "training.learning_rate=3e-3",  # the paper's formula gives too high a rate for so narrow a model
        f"training.valid_every={steps}",
        "training.valid_sentences=0",
        f"training.save_every={steps // 2}",
        "training.log_every=20",
        "decoding.extra_length=10",  # after so few steps the model rarely ends a sentence
    ]


def is_done(config: Config) -> bool:
    """Return whether a row was trained to its last step, and that step was scored with these decoding settings."""
    scores = _scores_file(config)
    if not scores.is_file():
        return False
    record = read_evaluation(scores)
    step = record.checkpoint.step if record.checkpoint else None
    return step == config.training.steps and record.decoding == config.decoding


def read_result(config: Config, vocabulary: int) -> RowResult | None:
    """Return the results of a row, or None if it is not done."""
    if not is_done(config):
        return None
    record = read_evaluation(_scores_file(config))
    if record.perplexity is None:
        return None
    size = count_parameters(config.model, vocabulary, vocabulary).total
    return RowResult(
        record.perplexity, record.scores["bleu"].score, record.scores["bleu_paper"].score, size, training_hours(config)
    )


def training_hours(config: Config) -> float:
    """Return the hours of training steps up to the last checkpoint, without validation and scoring."""
    events = read_metrics(RunLayout(config.run_folder).metrics)
    return sum(event.number("seconds") or 0.0 for event in events if event.event == "train") / 3600


def as_markdown(results: Mapping[str, RowResult | None]) -> str:
    """Return the rows as Markdown with aligned columns; a dash means unknown."""
    cells = [list(COLUMNS), *(_cells(name, result) for name, result in results.items())]
    widths = [max(len(line[column]) for line in cells) for column in range(len(COLUMNS))]
    ruled = [cells[0], ["-" * width for width in widths], *cells[1:]]
    return "".join(
        f"| {' | '.join(_aligned(column, cell, widths[column]) for column, cell in enumerate(line))} |\n"
        for line in ruled
    )


def _cells(name: str, result: RowResult | None) -> list[str]:
    row = TABLE_3[name]
    return [
        name,
        row.change,
        _number(result and result.perplexity, 2),
        _number(row.perplexity, 2),
        _number(result and result.bleu, 1),
        _number(result and result.bleu_paper, 1),
        _number(row.bleu, 1),
        _number(result and result.parameters / 1e6, 1 if result and result.parameters > 1e7 else 3),
        _number(row.parameters, 0),
        _number(result and result.hours, 3),
        _number(row.hours, 0),
    ]


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _aligned(column: int, cell: str, width: int) -> str:
    return cell.ljust(width) if column < 2 else cell.rjust(width)


def _scores_file(config: Config) -> Path:
    return scores_folder(config) / "valid.json"
