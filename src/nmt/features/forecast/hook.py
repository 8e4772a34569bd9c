"""Forecast the end of a run at its validations. Nothing that is computed here changes the run."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from nmt.compute import distributed
from nmt.compute.uptime import uptime
from nmt.config.choices import is_text
from nmt.config.schema import Config
from nmt.data.store import PairStore
from nmt.errors import UserError
from nmt.features.forecast.bleu import Reached, learned_bleu
from nmt.features.forecast.curve import Point, curve_of, smoothing_floor
from nmt.features.forecast.earlier_runs import SHARES, rates
from nmt.features.forecast.extrapolate import situation
from nmt.features.forecast.figures import Forecast
from nmt.features.forecast.learn import Band, learned
from nmt.features.forecast.settings import ForecastTraining
from nmt.runs.layout import RunLayout
from nmt.runs.metrics import MetricsEvent, read_metrics
from nmt.text.lines import read_lines
from nmt.text.tokenizer import Tokenizer
from nmt.training.clock import reachable_step
from nmt.training.hook import Report, TrainingHook
from nmt.training.schedule import until

FIRST_SHARE = SHARES[0]
"""The share of a run after which it is forecast, as the earlier runs were."""
LAST_SHARE = 0.95
"""The share of a run from which on it is not: that is its end but for a few steps, for which it may have no time."""
RECENT = 10
"""The number of log lines from which the time per step is taken."""


def forecaster(config: Config) -> "Forecaster | None":
    """Return what forecasts a run; None if the settings ask for no forecast."""
    return Forecaster(config) if config.of(ForecastTraining).forecast else None


class Forecaster(TrainingHook):
    """Forecasts the end of a run from its metrics.jsonl, so it has no state of its own."""

    def __init__(self, config: Config) -> None:
        """See the settings; `nmt data` may replace the text during training, so it is read now."""
        self._config = config
        self._pieces_per_character = _pieces_per_character(config) if distributed.is_main() else 0.0
        self._vocabulary = _target_vocabulary(config) if distributed.is_main() else 0

    def validated(self, step: int, figures: Mapping[str, float]) -> Report:
        """Forecast the end in the main process."""
        if not distributed.is_main():
            return Report()
        with suppress(UserError):  # a forecast must not end a run
            events = read_metrics(RunLayout(self._config.run_folder).metrics)
            if (found := self._forecast(events, step, figures)) is not None:
                return Report(found.figures, lines=[found.line])
        return Report()

    def _forecast(self, events: Sequence[MetricsEvent], step: int, figures: Mapping[str, float]) -> Forecast | None:
        """Return the forecast; None if it is too early or too late, or the loss does not fall or is too low."""
        loss, training = figures["loss"], self._config.training
        end, of_rate = last_step(self._config, events, step), end_of_rate(self._config, events)
        first = max(FIRST_SHARE * end, until(of_rate, training).warmup_steps)
        if not math.isfinite(loss) or not first <= step < LAST_SHARE * end:
            return None
        earlier = curve_of([each for each in events if each.step <= step], "loss")
        curve = replace(earlier, valid=[*(each for each in earlier.valid if each.step < step), Point(step, loss)])
        if len(curve.valid) > 1 and loss >= curve.valid[0].loss:
            return None  # it has learned nothing since, or diverges
        best = min(each.loss for each in curve.valid)
        floor = smoothing_floor(self._vocabulary, training.label_smoothing)
        now = situation(curve, rates(training, of_rate), end, floor)
        if not now.can_be_extrapolated:
            return None
        expected = Band(*(min(best, each) for each in learned().band(now, end * training.batch_tokens)))
        return Forecast(end, expected, self._bleu(figures, expected, step / end))

    def _bleu(self, figures: Mapping[str, float], loss: Band, done: float) -> Band | None:
        """Return the BLEU to expect; None if the run does not measure any, or what it measures is too low to tell."""
        pieces, nll = self._pieces_per_character, figures.get("nll", math.nan)
        if "bleu" not in figures or not pieces or not math.isfinite(nll):
            return None
        reached = Reached(figures["loss"], nll, pieces, figures["bleu"], done)
        return learned_bleu().band(reached, loss) if reached.tells else None


def _pieces_per_character(config: Config) -> float:
    """Return the word pieces per character of the reference of the development set; 0 if it is not translated."""
    language = config.data.target_lang
    if not (is_text(language) and config.training.valid_sentences):
        return 0.0
    with suppress(UserError, OSError):
        store = PairStore.open(config.data_folder, "valid")
        characters = sum(map(len, read_lines(config.data_folder / f"valid.{language}")))
        return (int(store.target_offsets[-1]) + len(store)) / max(1, characters)
    return 0.0


def _target_vocabulary(config: Config) -> int:
    """Return the size of the target vocabulary, which may have fewer pieces than asked for, or those of another run."""
    with suppress(UserError):
        return Tokenizer.load(config.data_folder).target_size
    return config.tokenizer.vocab_size


def last_step(config: Config, events: Sequence[MetricsEvent], step: int) -> int:
    """Return the step at which a run ends, by its number of steps or by a limit of time."""
    end, limit, recent = end_of_rate(config, events), 60 * config.training.max_minutes, _timed(events)[1:][-RECENT:]
    if not (limit and recent):
        return end
    return min(end, step + round(max(0.0, limit - uptime()) / _seconds_per_step(recent)))


def end_of_rate(config: Config, events: Sequence[MetricsEvent]) -> int:
    """Return the last step of the schedule, which does not know when the process must end."""
    if not (lines := _timed(events)):
        return config.training.steps
    step = max(each.step for each in events if each.event == "train")
    return reachable_step(step, step * _seconds_per_step(lines), config.training)


class _Timed(NamedTuple):
    """The steps of a log line of training, and the seconds that they took."""

    steps: int
    seconds: float


def _timed(events: Sequence[MetricsEvent]) -> list[_Timed]:
    """Return the steps that are timed: those between an interruption and the log line before it are not."""
    found, before = [], 0
    for each in events:
        if each.event == "train" and (seconds := each.number("seconds")) and each.step > before:
            found.append(_Timed(each.step - before, seconds))
        if each.event in ("start", "train"):
            before = each.step
    return found


def _seconds_per_step(lines: Sequence[_Timed]) -> float:
    return sum(each.seconds for each in lines) / sum(each.steps for each in lines)
