"""Make Vega-Lite specifications of charts. Colours are variables of the page's style sheet."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Spec = dict[str, Any]
"""A Vega-Lite chart."""

MAX_POINTS = 800
"""The largest number of points to draw of a curve; of a longer curve every second, third, ... point is drawn."""
MAX_DOTS = 12
"""A curve with at most this many points shows each as a dot, because a line of one point is invisible."""
COLOURS = 6
"""The number of colours for series in the style sheet."""
SHORT_LABELS = "format(datum.value, abs(datum.value) < 1000 ? '~g' : '~s')"
"""Number format of an axis: 0.5, 20, 5k."""
EXPONENT_LABELS = "datum.value ? format(datum.value, '~e') : '0'"
"""Number format of an axis: 1e-4."""
FULL_CHART_BUCKETS = 7
"""The number of buckets that fill a bar chart; with fewer, the bars keep their width."""
MIN_LOG_RANGE = 4
"""The smallest ratio of highest to lowest value for which a logarithmic axis has enough labels."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The vertical axis of a chart."""

    title: str
    format: str = ",.4~g"
    """Format of the value in a tooltip."""
    exponent: bool = False
    """Whether labels have an exponent."""
    log: bool = False
    """Whether the axis is logarithmic if the values span a wide range."""
    zero: bool = False
    """Whether the axis begins at zero."""


@dataclass(frozen=True, slots=True)
class Marker:
    """An event at a step, drawn as a vertical line."""

    step: int
    label: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Bucket:
    """The scores of the sentences in a range, such as of lengths."""

    label: str
    sentences: int
    scores: Mapping[str, float]
    """By the name of the metric."""


Curves = Mapping[str, Sequence[tuple[int, float]]]
"""Points (step, value) of each series."""


def curves(series: Curves, y: Axis, markers: Sequence[Marker] = ()) -> Spec:
    """Draw lines over the steps; the point nearest to the pointer has a tooltip."""
    points = [
        {"series": name, "step": step, "value": value}
        for name, line in series.items()
        for step, value in thin_out(line)
    ]
    values = [value for line in series.values() for _, value in line]
    log = y.log and max(values) > MIN_LOG_RANGE * min(values)
    scale: Spec = {"type": "log", "nice": False} if log else {"zero": y.zero and not y.log}
    ticks: Spec = {"title": None, "labelExpr": EXPONENT_LABELS if y.exponent else SHORT_LABELS}
    if log:
        ticks["values"] = log_ticks(values)
    steps: Spec = {"title": "step", "labelExpr": SHORT_LABELS}
    encoding = {
        "x": {"field": "step", "type": "quantitative", "scale": {"zero": True}, "axis": steps},
        "y": {"field": "value", "type": "quantitative", "scale": scale, "axis": ticks},
        "color": colour("series", list(series), legend=len(series) > 1),
    }
    tooltip = [
        *([{"field": "series", "title": "curve"}] if len(series) > 1 else []),
        {"field": "step", "format": ","},
        {"field": "value", "title": y.title, "format": y.format},
    ]
    normal, errors = ([each for each in markers if each.is_error == is_error] for is_error in (False, True))
    near = {"type": "point", "nearest": True, "on": "pointermove", "clear": "pointerout"}
    hovered = {"condition": {"param": "hover", "empty": False, "value": 1}, "value": 0}
    return {
        "height": 150,
        "data": {"values": points},
        "layer": [
            *(
                _markers(found, colour)
                for found, colour in ((normal, "var(--quiet)"), (errors, "var(--gone)"))
                if found
            ),
            {"mark": {"type": "line", "strokeWidth": 1.75, "clip": True}, "encoding": encoding},
            *_single_points(series, encoding),
            {
                "mark": {"type": "circle", "size": 60},
                "params": [{"name": "hover", "select": near}],
                "encoding": {**encoding, "opacity": hovered, "tooltip": tooltip},
            },
        ],
    }


def _single_points(series: Curves, encoding: Spec) -> list[Spec]:
    """Draw each point of the curves that have few points."""
    few = [name for name, line in series.items() if 0 < len(line) <= MAX_DOTS]
    shown = {"filter": {"field": "series", "oneOf": few}}
    dots = {"transform": [shown], "mark": {"type": "circle", "size": 22, "opacity": 1}, "encoding": encoding}
    return [dots] if few else []


def _markers(markers: Sequence[Marker], colour: str) -> Spec:
    """Draw vertical lines at events."""
    return {
        "data": {"values": [{"step": marker.step, "event": marker.label} for marker in markers]},
        "mark": {"type": "rule", "strokeDash": [3, 3], "color": colour, "strokeWidth": 1.5},
        "encoding": {
            "x": {"field": "step", "type": "quantitative"},
            "tooltip": [{"field": "event"}, {"field": "step", "format": ","}],
        },
    }


def histogram(sides: Mapping[str, npt.NDArray[np.float64]], edges: npt.NDArray[np.float64], x: str, y: str) -> Spec:
    """Draw the histograms of source and target in one chart."""
    values = [
        {"side": side, "from": float(low), "to": float(high), "count": float(count)}
        for side, counts in sides.items()
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    return {
        "height": 170,
        "data": {"values": values},
        "encoding": {
            "x": {
                "field": "from", "type": "quantitative", "scale": {"domain": [float(edges[0]), float(edges[-1])]},
                "axis": {"title": x, "grid": False},
            },
            "y": {
                "field": "count", "type": "quantitative", "stack": None,
                "axis": {"title": None, "labelExpr": SHORT_LABELS},
            },
            "color": colour("side", list(sides), legend=len(sides) > 1),
        },
        "layer": [
            {"mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5}},
            {
                "mark": {"type": "bar", "binSpacing": 0, "opacity": 0.18},
                "encoding": {
                    "x": {"field": "from", "bin": {"binned": True}, "type": "quantitative"},
                    "x2": {"field": "to"},
                    "tooltip": [
                        {"field": "side"},
                        {"field": "from", "title": f"{x}, from", "format": ",.4~g"},
                        {"field": "to", "title": "to", "format": ",.4~g"},
                        {"field": "count", "title": y, "format": ",.4~g"},
                    ],
                },
            },
        ],
    }  # fmt: skip


def bars(buckets: Sequence[Bucket], x: str) -> Spec:
    """Draw the scores of buckets, one bar per bucket and metric."""
    values = [
        {"bucket": bucket.label, "sentences": bucket.sentences, "score": name, "value": score}
        for bucket in buckets
        for name, score in bucket.scores.items()
    ]
    metrics = list(dict.fromkeys(name for bucket in buckets for name in bucket.scores))
    return {
        "height": 170,
        "data": {"values": values},
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            "x": {
                "field": "bucket", "type": "ordinal", "sort": None, "axis": {"title": x, "labelAngle": 0},
                "scale": {"paddingInner": 0.3, "paddingOuter": max(0.2, (FULL_CHART_BUCKETS - len(buckets)) / 2)},
            },
            "xOffset": {"field": "score", "sort": None},
            "y": {"field": "value", "type": "quantitative", "axis": {"title": None}},
            "color": colour("score", metrics, legend=True),
            "tooltip": [
                {"field": "bucket", "title": x},
                {"field": "score"},
                {"field": "value", "format": ".1f"},
                {"field": "sentences", "format": ","},
            ],
        },
    }  # fmt: skip


def log_ticks(values: Sequence[float]) -> list[float]:
    """Return the labels of a logarithmic axis: 1, 2 and 5 times powers of ten, fewer for a wide range."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    steps = {1: (1.0, 2.0, 5.0), 2: (1.0, 2.0, 5.0), 3: (1.0, 3.0)}.get(high - low, (1.0,))
    return [step * 10.0**power for power in range(low, high + 1) for step in steps]


def colour(field: str, names: Sequence[str], *, legend: bool) -> Spec:
    """Return an encoding that gives each name a colour of the page's palette, in order."""
    palette = [f"var(--series-{index % COLOURS + 1})" for index in range(len(names))]
    scale = {"domain": list(names), "range": palette}
    shown = {"orient": "top", "title": None, "symbolType": "circle", "symbolOpacity": 1} if legend else None
    return {"field": field, "type": "nominal", "scale": scale, "legend": shown}


def thin_out(points: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    """Return at most MAX_POINTS evenly spaced points, and always the last point."""
    stride = -(-len(points) // MAX_POINTS)
    return points if stride <= 1 else [*points[:-1][::stride], points[-1]]
