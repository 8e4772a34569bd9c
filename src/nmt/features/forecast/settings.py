"""The setting of forecasts."""

from dataclasses import dataclass, field

from nmt.config.checks import ADJUSTABLE


@dataclass(frozen=True, kw_only=True)
class ForecastTraining:
    """Whether a run forecasts its end."""

    forecast: bool = field(default=True, metadata=ADJUSTABLE)
    """At each validation from a sixth of the steps on, forecast the development loss and BLEU of the end."""
