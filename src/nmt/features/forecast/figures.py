"""A forecast, as it is logged, shown and read again."""

from typing import NamedTuple

from nmt.features.forecast.learn import Band
from nmt.runs.metrics import MetricsEvent

ENDS = ("", "_low", "_high")
"""The ends of the names of the figures of a band."""


class Forecast(NamedTuple):
    """What to expect of the best checkpoint at the end of a run."""

    step: int
    """The last step."""
    loss: Band
    bleu: Band | None

    @property
    def figures(self) -> dict[str, float]:
        """The figures of the event in metrics.jsonl."""
        found: dict[str, float] = {"forecast_step": self.step}
        for name, band in (("loss", self.loss), ("bleu", self.bleu)):
            if band is not None:
                found |= {f"forecast_{name}{end}": value for end, value in zip(ENDS, band, strict=True)}
        return found

    @property
    def line(self) -> str:
        """The line of the log."""
        bands = [f"smoothed loss {self.loss.expected:.3f} ({self.loss.low:.3f} to {self.loss.high:.3f})"]
        if self.bleu is not None:
            bands.append(f"bleu {self.bleu.expected:.1f} ({self.bleu.low:.1f} to {self.bleu.high:.1f})")
        return f"forecast for step {self.step}  {'  '.join(bands)}, in brackets 80% of the outcomes"


def forecast_in(event: MetricsEvent) -> Forecast | None:
    """Return the forecast of an event; None if it has none."""
    loss, step = _band_in(event, "loss"), event.number("forecast_step")
    if loss is None or step is None:
        return None
    return Forecast(round(step), loss, _band_in(event, "bleu"))


def _band_in(event: MetricsEvent, name: str) -> Band | None:
    ends = [event.number(f"forecast_{name}{end}") for end in ENDS]
    values = [each for each in ends if each is not None]
    return Band(*values) if len(values) == len(ENDS) else None
