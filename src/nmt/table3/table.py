"""Write Table 3 of the paper with our own results, and say what can be concluded from them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import NamedTuple

from nmt.config.saved import read_saved, read_settings
from nmt.config.tree import Config
from nmt.errors import ConfigError, nearest
from nmt.estimate.parameters import count_parameters
from nmt.evaluation.paper_table3 import TABLE_3
from nmt.evaluation.record import read_evaluation
from nmt.runs.checkpoints import Checkpoints
from nmt.runs.layout import RunLayout
from nmt.runs.metrics import read_metrics
from nmt.runs.scores import scores_folder
from nmt.table3.effects import Effect

COLUMNS = ("row", "change", "PPL", "paper", "BLEU", "BLEU, as the paper counts", "paper", "M params", "paper",
           "hours", "paper")  # fmt: skip
EFFECT_COLUMNS = ("row", "change", "PPL, compared with base", "in the paper", "same sign")


class RunResult(NamedTuple):
    """Our own results for a row, from one run."""

    perplexity: float
    bleu: float
    bleu_paper: float
    parameters: int
    hours: float


Results = Mapping[str, Sequence[RunResult]]
"""The finished runs of each row, one per seed."""


def choose_rows(names: Sequence[str]) -> list[str]:
    """Return the rows with these names, or all of them, in the paper's order."""
    for name in names:
        if name not in TABLE_3:
            raise ConfigError(f"table3.rows: the paper's Table 3 has no row {name}; {nearest(name, TABLE_3)}")
    return [name for name in TABLE_3 if not names or name in names]


def is_done(config: Config) -> bool:
    """Return whether a run was trained to its end, and its last step was scored with these decoding settings."""
    scores = _scores_file(config)
    if not scores.is_file():
        return False
    record = read_evaluation(scores)
    step = record.checkpoint.step if record.checkpoint else None
    return step in (config.training.steps, _step_at_limit(config)) and record.decoding == config.decoding


def _step_at_limit(config: Config) -> int | None:
    """Return the last step of a run that may have ended at the limit of its time, unless the limit has changed."""
    limit, layout = config.training.max_training_minutes, RunLayout(config.run_folder)
    if not limit or not layout.settings.is_file():
        return None
    trained = read_saved(layout.settings, read_settings)
    saved = Checkpoints(config.run_folder).steps()
    return saved[-1].step if saved and trained.get("training.max_training_minutes") == limit else None


def read_result(config: Config, vocabulary: int) -> RunResult | None:
    """Return the results of a run of a row, or None if it is not done."""
    if not is_done(config):
        return None
    record = read_evaluation(_scores_file(config))
    if record.perplexity is None:
        return None
    size = count_parameters(config.model, vocabulary, vocabulary).total
    return RunResult(
        record.perplexity, record.scores["bleu"].score, record.scores["bleu_paper"].score, size, training_hours(config)
    )


def training_hours(config: Config) -> float:
    """Return the hours of training steps up to the last checkpoint, without validation and scoring."""
    events = read_metrics(RunLayout(config.run_folder).metrics)
    return sum(event.number("seconds") or 0.0 for event in events if event.event == "train") / 3600


def as_markdown(results: Results) -> str:
    """Return the rows as Markdown: means and, of several seeds, their standard deviation."""
    return _aligned([list(COLUMNS), *(_cells(name, runs) for name, runs in results.items())])


def effects_as_markdown(found: Sequence[Effect]) -> str:
    """Return a table of effects on the perplexity of base, in percent; nothing if there are none."""
    if not found:
        return ""
    return _aligned([list(EFFECT_COLUMNS), *([each.row, TABLE_3[each.row].change, *_compared(each)] for each in found)])


def _compared(effect: Effect) -> tuple[str, str, str]:
    """Write the size of an effect, that of the paper's, and whether their signs agree."""
    size, paper = (f"{100 * math.expm1(each):+.1f}%" for each in (effect.size, effect.paper))
    if effect.error is not None:
        size += f" ± {100 * math.exp(effect.size) * effect.error:.1f}"
    if not effect.paper:
        return size, "none", "-"
    agrees = ("yes" if effect.has_the_papers_sign else "no") if effect.is_clear else "not clear"
    return size, paper, agrees


def _aligned(cells: Sequence[Sequence[str]]) -> str:
    """Return rows of text as Markdown with columns of the same width, the first two aligned to the left."""
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    ruled = [cells[0], ["-" * width for width in widths], *cells[1:]]
    return "".join(
        f"| {' | '.join(_padded(column, cell, widths[column]) for column, cell in enumerate(line))} |\n"
        for line in ruled
    )


def _cells(name: str, runs: Sequence[RunResult]) -> list[str]:
    row, millions = TABLE_3[name], [run.parameters / 1e6 for run in runs[:1]]
    return [
        name,
        row.change,
        _mean([run.perplexity for run in runs], 2),
        _number(row.perplexity, 2),
        _mean([run.bleu for run in runs], 1),
        _mean([run.bleu_paper for run in runs], 1),
        _number(row.bleu, 1),
        _mean(millions, 1 if millions and millions[0] > 10 else 3),
        _number(row.parameters, 0),
        _number(fmean(run.hours for run in runs) if runs else None, 3),
        _number(row.hours, 0),
    ]


def _mean(values: Sequence[float], digits: int) -> str:
    """Write the mean and the standard deviation of the values; a dash if there are none."""
    if len(values) < 2:
        return _number(values[0] if values else None, digits)
    return f"{fmean(values):.{digits}f} ± {stdev(values):.{digits}f}"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _padded(column: int, cell: str, width: int) -> str:
    return cell.ljust(width) if column < 2 else cell.rjust(width)


def _scores_file(config: Config) -> Path:
    return scores_folder(config) / "valid.json"
