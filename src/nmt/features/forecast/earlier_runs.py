"""The runs from which forecasts learn: their losses by step and some BLEU, made by `scripts/dev/learning_curves`."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from nmt.config.schema import TrainingConfig
from nmt.features.forecast.curve import Curve, Point, Rates, smoothing_floor
from nmt.training.schedule import learning_rate, peak_rate, until

SHARES = (1 / 6, 1 / 3, 1 / 2, 2 / 3, 5 / 6)
"""The shares of a run after which its end is forecast, to learn from it."""
INTERVALS = (6, 24)
"""Validations per run, of those that a forecast sees: few, as in short runs, and all."""


@dataclass(frozen=True, eq=False)  # equal only to itself, so that it can be the key of a cache
class EarlierRun:
    """A run that is done."""

    name: str
    about: dict[str, Any]
    """Its text and settings."""
    valid: list[tuple[int, float, float]]
    """Step, smoothed loss and negative log-likelihood of each validation."""
    train: list[tuple[int, float, float, int]]
    """The same of each log line of training, and the passes over the text."""
    bleu: list[tuple[int, float]]
    """Step and BLEU on the development set."""

    @property
    def steps(self) -> int:
        """The number of updates."""
        return int(self.about["steps"])

    @property
    def tokens(self) -> float:
        """The most target tokens of all its steps."""
        return float(self.steps * self.about["batch_tokens"])

    @property
    def floor(self) -> float:
        """The smoothed loss of a perfect model."""
        return smoothing_floor(self.about["words"], SMOOTHING)

    @property
    def rates(self) -> Rates:
        """The learning rates."""
        schedule, warmup = self.about["schedule"], self.about["warmup_steps"]
        peak, decay = self.about["learning_rate"], self.about["weight_decay"]
        return rates(
            TrainingConfig(
                steps=self.steps, schedule=schedule, warmup_steps=warmup, learning_rate=peak, weight_decay=decay
            )
        )

    def curve(self, step: int, validations: int = INTERVALS[-1]) -> Curve:
        """Return the curve up to a step, as if the run had had this number of validations."""
        interval = self.steps // validations
        return Curve(
            [Point(at, loss) for at, loss, _ in self.valid if at <= step and at % interval == 0],
            [Point(at, loss) for at, loss, *_ in self.train if at <= step],
            max((passes for at, _, _, passes in self.train if at <= step), default=0),
        )

    def nll(self, step: int) -> float:
        """Return the negative log-likelihood of a validation."""
        return next(nll for at, _, nll in self.valid if at == step)

    @property
    def pieces_per_character(self) -> float:
        """Word pieces per character of the development set's reference."""
        return float(self.about["tokens"] / self.about["characters"])

    def best_loss(self, step: int = 0) -> float:
        """Return the lowest development loss from a step on."""
        return min(loss for at, loss, _ in self.valid if at >= step)


SMOOTHING = 0.1
"""Label smoothing of these runs."""


def rates(training: TrainingConfig, end: int = 0) -> Rates:
    """Return the rates of a run as fractions of the peak; `end` is its last step, if that is not `training.steps`."""
    width = 512  # the paper's peak depends on it, but not the fractions
    peak = peak_rate(training, width)
    return Rates(
        end or training.steps,
        until(end, training).warmup_steps,
        lambda step: learning_rate(step, training, width, end) / peak,
        shrinking=training.weight_decay * peak,
    )


@cache
def earlier_runs() -> list[EarlierRun]:
    """Return the runs that the package contains."""
    content = json.loads((files("nmt.features.forecast") / "curves.json").read_text(encoding="utf-8"))
    return [read_run(name, each) for name, each in content.items()]


def read_run(name: str, content: dict[str, Any]) -> EarlierRun:
    """Return a run from its JSON object."""
    lists = {key: [tuple(each) for each in content[key]] for key in ("valid", "train", "bleu")}
    return EarlierRun(name, {key: value for key, value in content.items() if key not in lists}, **lists)
