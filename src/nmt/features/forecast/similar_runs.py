"""Runs that had about as much text and computation as the one that `nmt describe` describes, and their BLEU."""

import json
import math
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

from nmt.commands.describe import RunFigures
from nmt.config.choices import is_text
from nmt.config.schema import Config
from nmt.features.forecast.earlier_runs import earlier_runs

MAX_SHOWN = 4
"""The most runs that are shown."""
MAX_FACTOR = 10
"""Runs with more than this times the operations, or less than one part in this, are not shown."""
PAGE = "docs/results.md#what-text-and-computation-give"


class MadeRun(NamedTuple):
    """A run that was made, and what it gave."""

    text: str
    pairs: int
    d_model: int
    steps: int
    batch_tokens: int
    flops: float
    """Operations of all steps."""
    bleu: float
    split: str
    """The text whose BLEU it is: development or test."""
    minutes: str = ""
    """How long it took, and on what; empty if that was not measured."""

    def distance(self, flops: float, pairs: int | None) -> float:
        """Return how much a run with other operations and pairs differs; the pairs may be unknown."""
        return abs(math.log(self.flops / flops)) + (abs(math.log(self.pairs / pairs)) if pairs else 0.0)

    @property
    def line(self) -> str:
        """A line for the terminal."""
        took = f", {self.minutes}" if self.minutes else ""
        return (
            f"  {self.bleu:.1f} BLEU ({self.split}): {self.text}, {self.pairs:,} pairs, d_model {self.d_model}, "
            f"{self.steps:,} steps of {self.batch_tokens:,} tokens, {self.flops:.1e} FLOPs{took}"
        )


def made_runs() -> Iterator[MadeRun]:
    """Yield the runs from which forecasts learn, and larger ones."""
    for run in earlier_runs():
        about = {name: run.about[name] for name in ("text", "pairs", "d_model", "steps", "batch_tokens", "flops")}
        yield MadeRun(**about, bleu=run.bleu[-1][1], split="development")
    content = (files("nmt.features.forecast") / "larger_runs.json").read_text(encoding="utf-8")
    yield from (MadeRun(split="test", **each) for each in json.loads(content))


def lines(config: Config, figures: RunFigures) -> list[str]:
    """Return the lines about the runs that are most similar; none if no run is."""
    if not is_text(config.data.target_lang):
        return []
    pairs = figures.data.pairs if figures.data else None
    alike = [each for each in made_runs() if 1 / MAX_FACTOR <= each.flops / figures.flops <= MAX_FACTOR]
    if not alike:
        return []
    nearest = sorted(alike, key=lambda each: each.distance(figures.flops, pairs))[:MAX_SHOWN]
    about = "similar text and computation" if pairs else "similar computation"
    return [f"what runs of {about} have reached ({PAGE}):", *(each.line for each in nearest)]
