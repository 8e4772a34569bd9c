"""Make Vega-Lite specifications of charts. Colours are variables of the page's style sheet."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Spec = dict[str, Any]
"""A Vega-Lite chart."""

MOST_POINTS = 800
"""The most points drawn of a curve; of a longer one every second, third, ... point is drawn."""
FEW_POINTS = 12
"""A curve with at most this many points shows each as a dot: a single one would be invisible as a line."""
COLOURS = 6
SHORT = "format(datum.value, abs(datum.value) < 1000 ? '~g' : '~s')"
"""Number format of an axis: 0.5, 20, 5k."""
SMALL = "datum.value ? format(datum.value, '~e') : '0'"
BUCKETS = 7
"""Buckets that fill a bar chart; with fewer, the bars keep their width."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A vertical axis."""

    title: str
    format: str = ",.4~g"
    """Format of the value under the pointer."""
    small: bool = False
    """Whether to write its values with an exponent."""
    log: bool = False
    zero: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """An event at a step, drawn as a vertical line."""

    step: int
    what: str
    bad: bool = False


MIN_LOG_RANGE = 4
"""The smallest ratio of highest to lowest value for which a logarithmic axis has enough labels."""
Curves = Mapping[str, Sequence[tuple[int, float]]]
"""Points (step, value) of each series."""


def curves(series: Curves, y: Axis, marks: Sequence[Mark] = ()) -> Spec:
    """Draw lines over the steps; the point nearest to the pointer shows its values."""
    points = [
        {"series": name, "step": step, "value": value} for name, line in series.items() for step, value in thin(line)
    ]
    values = [value for line in series.values() for _, value in line]
    log = y.log and max(values) > MIN_LOG_RANGE * min(values)
    scale: Spec = {"type": "log", "nice": False} if log else {"zero": y.zero and not y.log}
    ticks: Spec = {"title": None, "labelExpr": SMALL if y.small else SHORT}
    if log:
        ticks["values"] = log_ticks(values)
    steps: Spec = {"title": "step", "labelExpr": SHORT}
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
    fine, bad = [mark for mark in marks if not mark.bad], [mark for mark in marks if mark.bad]
    near = {"type": "point", "nearest": True, "on": "pointermove", "clear": "pointerout"}
    hovered = {"condition": {"param": "hover", "empty": False, "value": 1}, "value": 0}
    return {
        "height": 150,
        "data": {"values": points},
        "layer": [
            *(_marks(found, colour) for found, colour in ((fine, "var(--quiet)"), (bad, "var(--gone)")) if found),
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
    """Draw the points of the curves that have few."""
    few = [name for name, line in series.items() if 0 < len(line) <= FEW_POINTS]
    shown = {"filter": {"field": "series", "oneOf": few}}
    return [{"transform": [shown], "mark": {"type": "circle", "size": 22, "opacity": 1}, "encoding": encoding}] * bool(
        few
    )


def _marks(marks: Sequence[Mark], colour: str) -> Spec:
    """Draw vertical lines at events."""
    return {
        "data": {"values": [{"step": mark.step, "what": mark.what} for mark in marks]},
        "mark": {"type": "rule", "strokeDash": [3, 3], "color": colour, "strokeWidth": 1.5},
        "encoding": {
            "x": {"field": "step", "type": "quantitative"},
            "tooltip": [{"field": "what", "title": "here"}, {"field": "step", "format": ","}],
        },
    }


def histogram(sides: Mapping[str, npt.NDArray[np.float64]], edges: npt.NDArray[np.float64], x: str, y: str) -> Spec:
    """Draw histograms of both sides over each other."""
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
                "axis": {"title": None, "labelExpr": SHORT},
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


def bars(rows: Sequence[Mapping[str, Any]], measures: Sequence[str], x: str) -> Spec:
    """Draw scores of buckets, one bar per measure; each row has `bucket`, `sentences` and the measures."""
    values = [
        {"bucket": row["bucket"], "sentences": row["sentences"], "score": name, "value": row[name]}
        for row in rows
        for name in measures
    ]
    return {
        "height": 170,
        "data": {"values": values},
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            "x": {
                "field": "bucket", "type": "ordinal", "sort": None, "axis": {"title": x, "labelAngle": 0},
                "scale": {"paddingInner": 0.3, "paddingOuter": max(0.2, (BUCKETS - len(rows)) / 2)},
            },
            "xOffset": {"field": "score", "sort": None},
            "y": {"field": "value", "type": "quantitative", "axis": {"title": None}},
            "color": colour("score", list(measures), legend=True),
            "tooltip": [
                {"field": "bucket", "title": x},
                {"field": "score"},
                {"field": "value", "format": ".1f"},
                {"field": "sentences", "format": ","},
            ],
        },
    }  # fmt: skip


def log_ticks(values: Sequence[float]) -> list[float]:
    """Return the labels of a logarithmic axis: 1, 2 and 5 times powers of ten, and fewer for a wider range."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    steps = {1: (1.0, 2.0, 5.0), 2: (1.0, 2.0, 5.0), 3: (1.0, 3.0)}.get(high - low, (1.0,))
    return [step * 10.0**power for power in range(low, high + 1) for step in steps]


def colour(field: str, names: Sequence[str], *, legend: bool) -> Spec:
    """Give each name a colour, in the order of the page's palette."""
    palette = [f"var(--series-{index % COLOURS + 1})" for index in range(len(names))]
    scale = {"domain": list(names), "range": palette}
    shown = {"orient": "top", "title": None, "symbolType": "circle", "symbolOpacity": 1} if legend else None
    return {"field": field, "type": "nominal", "scale": scale, "legend": shown}


def thin(points: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    """Return at most MOST_POINTS evenly spaced points and always the last one."""
    every = -(-len(points) // MOST_POINTS)
    return points if every <= 1 else [*points[:-1][::every], points[-1]]
