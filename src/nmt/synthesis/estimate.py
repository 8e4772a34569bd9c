"""How long a translation takes, by translating a sample of the text."""

import time
from collections.abc import Callable, Sequence

from nmt.decoding.engine import Engine
from nmt.estimate.hardware import duration
from nmt.synthesis.shards import InputText

SHARE = 0.02
"""The largest share of the lines that a sample has."""
LEAST_LINES = 20
"""Samples of fewer lines say too little."""
WARM_UP_LINES = 16
"""Lines that are translated before time is taken, because operations are compiled when they are first used."""


def seconds_of(engine: Engine, lines: Sequence[str]) -> float:
    """Return the time that an engine takes to translate some lines."""
    engine.same_batches = True
    for _ in engine.translate(lines[:WARM_UP_LINES]):
        pass
    start = time.perf_counter()
    for _ in engine.translate(lines, window=len(lines)):
        pass
    return time.perf_counter() - start


def sample_for(text: InputText, missing_lines: int) -> Sequence[str]:
    """Return lines from everywhere in a text, few compared with those to translate; none if these are few."""
    wanted = min(len(text.sample), int(SHARE * missing_lines))
    return text.sample[:: -(-len(text.sample) // wanted)] if wanted >= LEAST_LINES else []


Measure = Callable[[Sequence[str]], float]
"""Translates lines on one device, and returns the seconds."""


def estimate(text: InputText, missing_lines: int, measure: Measure, device: str, devices: int) -> str:
    """Return a line with the time that the rest of a translation takes.

    Args:
        text: The text to translate.
        missing_lines: The number of lines that are left.
        measure: Measures the lines of a sample.
        device: The name that a device gives itself.
        devices: The number of devices.
    """
    lines = sample_for(text, missing_lines)
    if not lines:
        return f"no estimate, because {missing_lines:,} lines are too few"
    seconds = measure(lines)
    per_character = seconds / max(1, sum(map(len, lines)))
    hours = per_character * text.characters * missing_lines / text.lines / devices / 3600
    return (
        f"estimate: {duration(hours)} on {devices} x {device} "
        f"({len(lines):,} lines as a sample, {len(lines) / seconds:,.1f} lines per second on one)"
    )
