"""Write Table 3 of the paper with our own results."""

from collections.abc import Mapping, Sequence
from statistics import correlation, fmean, stdev
from typing import NamedTuple

from nmt.config.tree import Config
from nmt.estimate.parameters import count_parameters
from nmt.evaluation.paper import TABLE_3
from nmt.evaluation.record import EvaluationRecord, read_evaluation
from nmt.runs.layout import RunLayout
from nmt.runs.scores import scores_folder
from nmt.runs.tracker import read_metrics

COLUMNS = ["row", "change", "PPL", "paper", "BLEU", "BLEU, as the paper counts", "paper", "M params", "paper",
           "hours", "paper"]  # fmt: skip


class RunResult(NamedTuple):
    """Our own results for a row, from one run."""

    perplexity: float
    bleu: float
    bleu_paper: float
    parameters: int
    hours: float
    """Hours of training steps, without validation and scoring."""


def read_scores(config: Config) -> EvaluationRecord | None:
    """Return the scores of a run if its last step was scored with these decoding settings."""
    scores = scores_folder(config) / "valid.json"
    if not scores.is_file():
        return None
    record = read_evaluation(scores)
    step = record.checkpoint.step if record.checkpoint else None
    return record if step == config.training.steps and record.decoding == config.decoding else None


def read_result(config: Config, vocabulary: int) -> RunResult | None:
    """Return the results of a run of a row, or None if it is not done."""
    record = read_scores(config)
    if record is None or record.perplexity is None:
        return None
    events = read_metrics(RunLayout(config.run_folder).metrics)
    seconds = sum(event.number("seconds") or 0.0 for event in events if event.event == "train")
    parameters = count_parameters(config.model, vocabulary, vocabulary).total
    bleu, bleu_paper = (record.scores[name].score for name in ("bleu", "bleu_paper"))
    return RunResult(record.perplexity, bleu, bleu_paper, parameters, seconds / 3600)


def table(results: Mapping[str, Sequence[RunResult]]) -> str:
    """Return the rows as Markdown, with means and standard deviations over the seeds, and how their order agrees."""
    cells = [COLUMNS, *(_cells(name, runs) for name, runs in results.items())]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    lines = (
        " | ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in cells
    )
    return "".join(f"| {line} |\n" for line in lines) + _order(results)


def _cells(name: str, runs: Sequence[RunResult]) -> list[str]:
    row, millions = TABLE_3[name], [run.parameters / 1e6 for run in runs[:1]]
    return [
        name,
        row.change,
        _mean([run.perplexity for run in runs], 2),
        _mean([row.perplexity], 2),
        _mean([run.bleu for run in runs], 1),
        _mean([run.bleu_paper for run in runs], 1),
        _mean([row.bleu], 1),
        _mean(millions, 1 if max(millions, default=0) > 10 else 3),
        _mean([row.parameters], 0),
        _mean([fmean(run.hours for run in runs)] if runs else [], 3),
        _mean([row.hours], 0),
    ]


def _mean(values: Sequence[float | None], digits: int) -> str:
    """Write the mean of the values, and their standard deviation if there are several; a dash if there are none."""
    known = [value for value in values if value is not None]
    spread = f" ± {stdev(known):.{digits}f}" if len(known) > 1 else ""
    return f"{fmean(known):.{digits}f}{spread}" if known else "-"


def _order(results: Mapping[str, Sequence[RunResult]]) -> str:
    """Compare the order of the rows by perplexity with that of the paper."""
    ours = {name: fmean(run.perplexity for run in runs) for name, runs in results.items() if runs}
    if len(set(ours.values())) < 3:
        return ""
    found = correlation(_ranks([*ours.values()]), _ranks([TABLE_3[name].perplexity for name in ours]))
    return f"\nSpearman's rank correlation with the paper's perplexities, over {len(ours)} rows: {found:.2f}.\n"


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; equal values share their mean rank."""
    return [sum(other < each for other in values) + sum(other == each for other in values) / 2 for each in values]
