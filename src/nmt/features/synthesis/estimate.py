"""How long a translation takes and what it costs, by translating a sample of the text."""

import time
from collections.abc import Callable, Sequence

from nmt.config.schema import Config
from nmt.decoding.engine import Engine
from nmt.estimate.hardware import DEVICES, known_device
from nmt.estimate.named_device import duration
from nmt.features.synthesis.folder import SynthesisFolder
from nmt.features.synthesis.model import Translator
from nmt.features.synthesis.settings import SynthesizeConfig
from nmt.features.synthesis.shards import InputText

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


def estimate_missing(
    config: Config, text: InputText, folder: SynthesisFolder, translator: Translator, measure: Measure, devices: int
) -> str:
    """Return a line with the time and the money that the shards take that are not there yet."""
    return estimate(
        text, folder.missing_lines(), measure, device=translator.device, memory=translator.memory, devices=devices,
        price=config.of(SynthesizeConfig).price,
    )  # fmt: skip


def estimate(
    text: InputText,
    missing_lines: int,
    measure: Measure,
    *,
    device: str,
    memory: int,
    devices: int,
    price: float,
) -> str:
    """Return a line with the time and the money that the rest of a translation takes.

    Args:
        text: The text to translate.
        missing_lines: The number of lines that are left.
        measure: Measures the lines of a sample.
        device: The name that a device gives itself.
        memory: Its memory in bytes.
        devices: The number of devices.
        price: Dollars per hour of a device; 0 if it is not given.
    """
    lines = sample_for(text, missing_lines)
    if not lines:
        return f"no estimate, because {missing_lines:,} lines are too few"
    seconds = measure(lines)
    per_character = seconds / max(1, sum(map(len, lines)))
    hours = per_character * text.characters * missing_lines / text.lines / devices / 3600
    known = known_device(device, memory)
    price = price or (DEVICES[known].price if known else 0.0)
    money = (
        f"{hours * devices * price:,.2f} dollars at {price:.2f} per hour of each" if price else "set synthesize.price"
    )
    return (
        f"estimate: {duration(hours)} on {devices} x {device}, {money} "
        f"({len(lines):,} lines as a sample, {len(lines) / seconds:,.1f} lines per second on one)"
    )
