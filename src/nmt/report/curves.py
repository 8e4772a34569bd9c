"""Draw the values in metrics.jsonl as curves over the steps."""

from collections.abc import Mapping

from markupsafe import Markup

from nmt.config.data import corpora_of
from nmt.errors import UserError
from nmt.report.charts import Curves, draw
from nmt.report.run import Run

TITLES = {
    "loss": "Label-smoothed loss",
    "nll": "Negative log-likelihood",
    "bleu": "BLEU on the validation set",
    "learning_rate": "Learning rate",
    "gradient_norm": "Gradient norm",
    "tokens_per_second": "Tokens per second",
}
"""The title of each chart, by the field in metrics.jsonl."""
LOSSES = ("loss", "nll")
"""Fields that are logged for both the training text and the validation set."""


def training_curves(run: Run) -> list[Markup]:
    """Return a chart for each field that was logged."""
    drawn = []
    for name, title in TITLES.items():
        series = {"training": points(run, "train", name), "validation": points(run, "valid", name)}
        for corpus in list(corpora_of(run.config.data))[1:]:
            series[f"validation, {corpus}"] = points(run, "valid", f"{name}/{corpus}")
        drawn += _chart(name, title, series)
    if not drawn:
        raise UserError("nothing was logged yet: training writes its first line after training.log_every steps")
    return drawn


def overlaid_curves(runs: Mapping[str, Run]) -> list[Markup]:
    """Return the same charts with one curve per run; losses are of the validation set."""
    drawn = []
    for name, title in TITLES.items():
        kind = "valid" if name in (*LOSSES, "bleu") else "train"
        full_title = f"{title} on the validation set" if name in LOSSES else title
        drawn += _chart(name, full_title, {label: points(run, kind, name) for label, run in runs.items()})
    if not drawn:
        raise UserError("none of these runs has logged anything yet")
    return drawn


def _chart(name: str, title: str, series: Curves) -> list[Markup]:
    """Return the chart of a field in a list, which is empty if no curve has a point."""
    drawn = {label: line for label, line in series.items() if line}
    return [draw(title, drawn, zero=name not in LOSSES)] if drawn else []


def points(run: Run, kind: str, name: str) -> list[tuple[int, float]]:
    """Return (step, value) of each event of a kind whose value is finite."""
    return [(event.step, value) for event in run.events_named(kind) if (value := event.number(name)) is not None]
