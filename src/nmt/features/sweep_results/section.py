"""The runs of a sweep on the page of each of them: a table and a plot."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nmt.config.search_direction import lower_is_better
from nmt.features.sweep_results.record import RunRecord, Sweep, read_sweeps
from nmt.page.templates import templates_of
from nmt.runs.section import Section, ShownRun

WIDTH, HEIGHT = 640, 220
"""Size of the area of a plot, in its own units."""


class Point(NamedTuple):
    """A run in the plot."""

    x: float
    y: float
    record: RunRecord


class ShownSweep(NamedTuple):
    """A sweep on the page."""

    name: str
    metric: str
    keys: list[str]
    records: Sequence[RunRecord]
    best: RunRecord | None
    points: list[Point]
    lowest: float
    highest: float


def all_runs(run: ShownRun) -> Section | None:
    """Return a section with the sweeps that a run is part of, or that change its settings; None if there are none."""
    outputs = run.config.runs_folder
    found = [
        _shown(sweep)
        for sweep in read_sweeps(outputs)
        if any(run.config.name in (each.run, each.sweep) for each in sweep.records)
    ]
    if not found:
        return None
    environment = templates_of("nmt.features.sweep_results")
    shown = {"sweeps": found, "name": run.config.name, "width": WIDTH, "height": HEIGHT}
    body = environment.get_template("sweeps.html").render(shown)
    return Section("sweeps", "Sweeps", body, environment.get_template("sweeps.css").render())


def _shown(sweep: Sweep) -> ShownSweep:
    """Return what the page shows of a sweep."""
    metric, records = sweep
    keys = sorted({key for each in records for key in each.values})
    done = [each for each in records if each.result is not None]
    results = [each.result for each in done if each.result is not None]
    lowest, highest = (min(results), max(results)) if results else (0.0, 0.0)
    best = None
    if results:
        wanted = lowest if lower_is_better(metric) else highest
        best = next(each for each in done if each.result == wanted)
    points = list(_points(records, lowest, highest))
    return ShownSweep(records[0].sweep, metric, keys, records, best, points, lowest, highest)


def _points(records: Sequence[RunRecord], lowest: float, highest: float) -> Iterator[Point]:
    """Yield the places of the runs in the plot: from left to right in their order, the highest result on top."""
    step, span = WIDTH / max(1, len(records) - 1), (highest - lowest) or 1.0
    for place, record in enumerate(records):
        if record.result is not None:
            yield Point(round(place * step, 1), round(HEIGHT * (highest - record.result) / span, 1), record)
