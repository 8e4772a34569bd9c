"""Draw the values in metrics.jsonl as curves over the steps, as SVG in the colours of the page's style sheet."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from nmt.config.data import corpora_of
from nmt.errors import UserError
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
"""Fields that are logged for both the training text and the validation set; their axis need not begin at zero."""
WIDTH, HEIGHT = 440, 170
"""Size of the area of a chart, in CSS pixels; the labels of the axes are around it."""
LEFT, BOTTOM, MARGIN = 52, 22, 10
MAX_POINTS = 200
"""The largest number of points to draw of a curve; of a longer curve every second, third, ... point is drawn."""
TICKS = 5
COLOURS = 6
"""The number of colours for curves in the style sheet."""
Points = Sequence[tuple[int, float]]
"""The step and the value of each point of a curve."""


def training_curves(run: Run) -> list[Markup]:
    """Return a chart for each field that was logged."""
    charts: dict[str, dict[str, Points]] = {}
    for name, title in TITLES.items():
        series = {"training": points(run, "train", name), "validation": points(run, "valid", name)}
        for corpus in list(corpora_of(run.config.data))[1:]:
            series[f"validation, {corpus}"] = points(run, "valid", f"{name}/{corpus}")
        charts[title] = series
    return _drawn(charts, "nothing was logged yet: training writes its first line after training.log_every steps")


def overlaid_curves(runs: Mapping[str, Run]) -> list[Markup]:
    """Return the same charts with one curve per run; losses are of the validation set."""
    charts: dict[str, dict[str, Points]] = {}
    for name, title in TITLES.items():
        kind = "valid" if name in (*LOSSES, "bleu") else "train"
        full_title = f"{title} on the validation set" if name in LOSSES else title
        charts[full_title] = {label: points(run, kind, name) for label, run in runs.items()}
    return _drawn(charts, "none of these runs has logged anything yet")


def points(run: Run, kind: str, name: str) -> Points:
    """Return (step, value) of each event of a kind whose value is finite."""
    events = (event for event in run.events if event.event == kind)
    return [(event.step, value) for event in events if (value := event.number(name)) is not None]


def _drawn(charts: Mapping[str, Mapping[str, Points]], nothing: str) -> list[Markup]:
    """Return the charts that have a curve."""
    losses = tuple(TITLES[name] for name in LOSSES)
    found = []
    for title, series in charts.items():
        if curves := {label: line for label, line in series.items() if line}:
            found.append(draw(title, curves, zero=not title.startswith(losses)))
    if not found:
        raise UserError(nothing)
    return found


def draw(title: str, curves: Mapping[str, Points], *, zero: bool = False) -> Markup:
    """Draw curves over the steps; each point has a tooltip. The vertical axis may have to begin at zero."""
    values = [value for line in curves.values() for _, value in line]
    columns = _ticks(0, max(step for line in curves.values() for step, _ in line))
    rows = _ticks(0 if zero else min(values), max(values))

    def x(step: float) -> float:
        return round(WIDTH * (step - columns[0]) / (columns[-1] - columns[0]), 1)

    def y(value: float) -> float:
        return round(HEIGHT * (rows[-1] - value) / (rows[-1] - rows[0]), 1)

    shapes = [f'<text x="{x(each)}" y="{HEIGHT + 16}" text-anchor="middle">{_short(each)}</text>' for each in columns]
    for each in rows:
        shapes.append(f'<path class="tick" d="M0 {y(each)}H{WIDTH}"/>')
        shapes.append(f'<text x="-6" y="{y(each) + 4}" text-anchor="end">{_short(each)}</text>')
    legend = ""
    for number, (name, line) in enumerate(curves.items()):
        style = f"series-{number % COLOURS + 1}"
        thinned = thin_out(line)
        dots = "".join(
            f'<circle cx="{x(step)}" cy="{y(value)}" r="4">'
            f"<title>{escape(name)}, step {step:,}: {value:.5g}</title></circle>"
            for step, value in thinned
        )
        path = "L".join(f"{x(step)} {y(value)}" for step, value in thinned)
        shapes.append(f'<g class="{style}{" single" if len(line) == 1 else ""}"><path d="M{path}"/>{dots}</g>')
        legend += f'<span class="legend {style}">{escape(name)}</span>' if len(curves) > 1 else ""
    box = f"{-LEFT} {-MARGIN} {WIDTH + LEFT + MARGIN} {HEIGHT + BOTTOM + MARGIN}"
    svg = f'<svg viewBox="{box}" role="img">{"".join(shapes)}</svg>'
    return Markup(f'<figure class="chart"><figcaption>{escape(title)}</figcaption>{legend}{svg}</figure>')


def _ticks(low: float, high: float) -> list[float]:
    """Return evenly spaced round numbers, the first at most `low` and the last at least `high`."""
    least = (high - low) / TICKS or abs(high) / TICKS or 1.0
    power = 10.0 ** math.floor(math.log10(least))
    gap = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
    first, last = math.floor(low / gap + 1e-9), math.ceil(high / gap - 1e-9)
    return [number * gap for number in range(first, max(last, first + 1) + 1)]


def _short(value: float) -> str:
    """Return a number for an axis, such as 0.5, 20, 5k or 1e-04."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def thin_out(line: Points) -> Points:
    """Return at most MAX_POINTS evenly spaced points, and always the last point."""
    stride = -(-len(line) // MAX_POINTS)
    return line if stride <= 1 else [*line[:-1][::stride], line[-1]]
