"""Draw the events of metrics.jsonl as curves."""

from collections.abc import Mapping, Sequence

from nmt.errors import UserError
from nmt.report.charts import Axis, Curves, Mark, Spec, curves
from nmt.report.run import Run
from nmt.runs.metrics import MetricsEvent

Events = Sequence[MetricsEvent]

FIGURES = (
    ("loss", "Label-smoothed loss", Axis("label-smoothed loss", ".4f")),
    ("nll", "Negative log-likelihood", Axis("negative log-likelihood", ".4f")),
    ("perplexity", "Perplexity", Axis("perplexity", ",.2f", log=True)),
    ("bleu", "BLEU on the development set", Axis("BLEU", ".2f", zero=True)),
    ("learning_rate", "Learning rate", Axis("learning rate", ".3e", zero=True, small=True)),
    ("gradient_norm", "Gradient norm", Axis("norm", ".3f", zero=True)),
    ("tokens_per_second", "Tokens per second", Axis("tokens per second", ",.0f", zero=True)),
)
"""Field of the events, title and axis."""
OF_TEXT = ("loss", "nll", "perplexity")
"""Figures that both the training text and the development set have."""
KINDS = {"train": "training", "valid": "development"}


def training_curves(run: Run) -> dict[str, tuple[str, Spec]]:
    """Return title and chart of each figure by its name, without figures for which nothing was logged."""
    marks = happenings(run.events)
    drawn = {}
    for name, title, axis in FIGURES:
        series = {words: points(run.events_named(kind), name) for kind, words in KINDS.items()}
        series = {words: line for words, line in series.items() if line}
        if series:
            drawn[name] = (title, curves(series, axis, marks))
    if not drawn:
        raise UserError("nothing was logged yet: training writes its first line after training.log_every steps")
    return drawn


def overlaid_curves(runs: Mapping[str, Run]) -> dict[str, tuple[str, Spec]]:
    """Return the same figures with one curve per run; losses and perplexities are of the development set."""
    drawn = {}
    for name, title, axis in FIGURES:
        kind = "valid" if name in (*OF_TEXT, "bleu") else "train"
        series: Curves = {label: points(run.events_named(kind), name) for label, run in runs.items()}
        if any(series.values()):
            words = f"{title} on the development set" if name in OF_TEXT else title
            drawn[name] = (words, curves(series, axis))
    if not drawn:
        raise UserError("none of these runs has logged anything yet")
    return drawn


def points(events: Events, name: str) -> list[tuple[int, float]]:
    """Return (step, value) of the events that have a finite value."""
    return [(event.step, value) for event in events if (value := event.number(name)) is not None]


def happenings(events: Events) -> list[Mark]:
    """Return the steps at which the run was resumed or skipped updates whose gradient was not finite."""
    resumed = [Mark(event.step, "resumed") for event in events if event.event == "start" and event.step]
    counts = [(event.step, event.number("skipped")) for event in events]
    skipped = [Mark(step, f"{count:g} skipped", bad=True) for step, count in counts if count]
    return [*resumed, *skipped]
