"""Draw the values in metrics.jsonl as curves over the steps."""

from collections.abc import Mapping, Sequence
from itertools import takewhile

from nmt.config.schema.corpora import corpora_of
from nmt.errors import UserError
from nmt.features.report.charts import Axis, Curves, Marker, Spec, curves
from nmt.features.report.run import Run
from nmt.runs.metrics import MetricsEvent

Events = Sequence[MetricsEvent]

CURVES = (
    ("loss", "Label-smoothed loss", Axis("label-smoothed loss", ".4f")),
    ("nll", "Negative log-likelihood", Axis("negative log-likelihood", ".4f")),
    ("perplexity", "Perplexity", Axis("perplexity", ",.2f", log=True)),
    ("bleu", "BLEU on the development set", Axis("BLEU", ".2f", zero=True)),
    ("learning_rate", "Learning rate", Axis("learning rate", ".3e", zero=True, exponent=True)),
    ("gradient_norm", "Gradient norm", Axis("norm", ".3f", zero=True)),
    ("tokens_per_second", "Tokens per second", Axis("tokens per second", ",.0f", zero=True)),
)
"""Field in metrics.jsonl, title and axis of each curve."""
LOSS_FIELDS = ("loss", "nll", "perplexity")
"""Fields that are logged for both the training text and the development set."""
SERIES = {"train": "training", "valid": "development"}
"""Kind of event, and the name of its curve."""


def training_curves(run: Run) -> dict[str, tuple[str, Spec]]:
    """Return title and chart by field, without fields that were not logged."""
    markers = resumes_and_skips(run.events)
    drawn = {}
    for name, title, axis in CURVES:
        series = {label: points(run.events_named(kind), name) for kind, label in SERIES.items()}
        for corpus in list(corpora_of(run.config.data))[1:]:
            series[f"development, {corpus}"] = points(run.events_named("valid"), f"{name}/{corpus}")
        series = {label: line for label, line in series.items() if line}
        if series:
            drawn[name] = (title, curves(series, axis, markers))
    if not drawn:
        raise UserError("nothing was logged yet: training writes its first line after training.log_every steps")
    return drawn


def overlaid_curves(runs: Mapping[str, Run]) -> dict[str, tuple[str, Spec]]:
    """Return the same charts with one curve per run; losses and perplexities are of the development set."""
    drawn = {}
    for name, title, axis in CURVES:
        kind = "valid" if name in (*LOSS_FIELDS, "bleu") else "train"
        series: Curves = {label: points(run.events_named(kind), name) for label, run in runs.items()}
        if any(series.values()):
            full_title = f"{title} on the development set" if name in LOSS_FIELDS else title
            drawn[name] = (full_title, curves(series, axis))
    if not drawn:
        raise UserError("none of these runs has logged anything yet")
    return drawn


def points(events: Events, name: str) -> list[tuple[int, float]]:
    """Return (step, value) of each event whose value is finite."""
    return [(event.step, value) for event in events if (value := event.number(name)) is not None]


def divergence(events: Events) -> str:
    """Say since when the loss has not been finite, and how many steps were skipped; empty if the last one is finite."""
    losses = [(event.step, event.number("loss")) for event in events if "loss" in event.figures]
    lost = list(takewhile(lambda each: each[1] is None, reversed(losses)))
    if not lost:
        return ""
    skipped = sum(event.number("skipped") or 0 for event in events)
    reason = f"; the gradients of {skipped:,.0f} steps were not finite, so they were skipped" if skipped else ""
    return f"The loss has not been finite since step {lost[-1][0]:,}{reason}."


def resumes_and_skips(events: Events) -> list[Marker]:
    """Return the steps at which the run was resumed or skipped updates whose gradient was not finite."""
    resumed = [Marker(event.step, "resumed") for event in events if event.event == "start" and event.step]
    counts = [(event.step, event.number("skipped")) for event in events]
    skipped = [Marker(step, f"{count:g} skipped", is_error=True) for step, count in counts if count]
    return [*resumed, *skipped]
