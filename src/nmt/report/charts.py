"""Draw curves as SVG, in the colours of the page's style sheet."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

WIDTH, HEIGHT = 440, 170
"""Size of the area of a chart, in CSS pixels; the labels of the axes are around it."""
LEFT, BOTTOM, MARGIN = 52, 22, 10
MAX_POINTS = 200
"""The largest number of points to draw of a curve; of a longer curve every second, third, ... point is drawn."""
TICKS = 5
COLOURS = 6
"""The number of colours for curves in the style sheet."""

Curves = Mapping[str, Sequence[tuple[int, float]]]
"""Points (step, value) of each curve, by its name."""


def draw(title: str, curves: Curves, *, zero: bool = False) -> Markup:
    """Draw curves over the steps; each point has a tooltip.

    Args:
        title: The title of the chart.
        curves: The curves, of which at least one has a point.
        zero: Whether the vertical axis begins at zero.
    """
    points = [point for line in curves.values() for point in line]
    values = [value for _, value in points]
    x = _Axis(0, max(step for step, _ in points) or 1, WIDTH)
    y = _Axis(0 if zero else min(values), max(values), HEIGHT)
    parts = [
        *(_tick(y.place(tick), _short(tick)) for tick in y.ticks()),
        *(_label(x.place(tick), _short(tick)) for tick in x.ticks()),
        *(_curve(name, line, number, x, y) for number, (name, line) in enumerate(curves.items())),
    ]
    box = f"{-LEFT} {-MARGIN} {WIDTH + LEFT + MARGIN} {HEIGHT + BOTTOM + MARGIN}"
    legend = Markup("").join(map(_legend, range(len(curves)), curves)) if len(curves) > 1 else ""
    return Markup(
        '<figure class="chart"><figcaption>{}</figcaption>{}<svg viewBox="{}" role="img">{}</svg></figure>'
    ).format(title, legend, box, Markup("").join(parts))


class _Axis:
    """Maps values to pixels."""

    def __init__(self, low: float, high: float, pixels: int) -> None:
        self.step = _step((high - low) / TICKS or abs(high) / TICKS or 1.0)
        self.low = math.floor(low / self.step) * self.step
        self.high = max(high, self.low + self.step)
        self.pixels = pixels

    def place(self, value: float) -> float:
        """Return the distance of a value from the beginning of the axis."""
        return round(self.pixels * (value - self.low) / (self.high - self.low), 1)

    def ticks(self) -> list[float]:
        """Return the round values on the axis."""
        count = math.floor((self.high - self.low) / self.step + 1e-9)
        return [self.low + number * self.step for number in range(count + 1)]


def _step(at_least: float) -> float:
    """Return the next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(at_least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= at_least * (1 - 1e-9))


def _tick(at: float, label: str) -> Markup:
    return Markup('<path class="tick" d="M0 {0}H{1}"/><text x="-6" y="{2}" text-anchor="end">{3}</text>').format(
        HEIGHT - at, WIDTH, HEIGHT - at + 4, label
    )


def _label(at: float, label: str) -> Markup:
    return Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(at, HEIGHT + 16, label)


def _curve(name: str, line: Sequence[tuple[int, float]], number: int, x: _Axis, y: _Axis) -> Markup:
    places = [(x.place(step), HEIGHT - y.place(value), step, value) for step, value in thin_out(line)]
    path = "L".join(f"{across} {down}" for across, down, _, _ in places)
    dots = (
        f'<circle cx="{across}" cy="{down}" r="4"><title>{escape(name)}, step {step:,}: {value:.5g}</title></circle>'
        for across, down, step, value in places
    )
    single = " single" if len(places) == 1 else ""
    return Markup('<g class="series-{}{}"><path d="M{}"/>{}</g>').format(
        number % COLOURS + 1, single, path, Markup("".join(dots))
    )


def _legend(number: int, name: str) -> Markup:
    return Markup('<span class="legend series-{}">{}</span>').format(number % COLOURS + 1, name)


def _short(value: float) -> str:
    """Return a number for an axis, such as 0.5, 20, 5k or 1e-04."""
    if value and abs(value) < 0.01:
        return f"{value:.2g}"
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def thin_out(points: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    """Return at most MAX_POINTS evenly spaced points, and always the last point."""
    stride = -(-len(points) // MAX_POINTS)
    return points if stride <= 1 else [*points[:-1][::stride], points[-1]]
