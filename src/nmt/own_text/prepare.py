"""Plan a run before it begins, and say in one line what was chosen and why."""

import math
import sys
from collections.abc import Iterable
from functools import partial
from textwrap import fill
from typing import NamedTuple

from nmt.compute import distributed
from nmt.compute.distributed import session
from nmt.compute.machine import Machine
from nmt.config.commands import HOLD_OUT, SHAPE
from nmt.config.data import is_text
from nmt.config.keys import value_of, with_values, written
from nmt.config.tree import Config
from nmt.data.corpora import training_splits
from nmt.data.manifest import read_manifest
from nmt.data.mixture import open_training_text
from nmt.data.records import TOKENIZER_TASK, encode_task
from nmt.data.sources import registry
from nmt.data.store import Pairs
from nmt.own_text.complete import as_begun, derivable_from_text
from nmt.own_text.plan import MIN_USEFUL_STEPS, USEFUL_STEPS, Given, Plan, Shape, Text, plan, settings_of
from nmt.own_text.speed import seconds_per_step

BPE_DROPOUT_SETTINGS = ("noise.bpe_dropout_source", "noise.bpe_dropout_target")
BPE_DROPOUT, MIN_PASSES = 0.1, 50
"""The probability of Provilkov et al. (2020), and the passes over a text from which it makes a better model."""
WIDTH = 120
"""The longest line, in characters."""


class Prepared(NamedTuple):
    """The settings of a run, and what to tell the user."""

    config: Config
    message: str = ""
    """What to tell the user; empty if there is nothing to say."""
    warning: str = ""
    """Another line, for standard error."""

    def announce(self) -> None:
        """Print the lines, on the first process only."""
        if distributed.is_main():
            if self.message:
                text = fill(self.message, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
                print(text, flush=True)
            if self.warning:
                print(f"warning: {self.warning}", file=sys.stderr, flush=True)


def plan_training(config: Config) -> Prepared:
    """Return the settings of a run with those that are derived; a run that has begun keeps its own."""
    own = config.own
    if not own.derive:
        return Prepared(config)
    if (begun := as_begun(config, ["own.minutes"] if own.minutes else [])) is not None:
        return Prepared(begun)
    if not is_text(target := config.data.target_lang):
        return Prepared(config, f"own.derive: nothing is derived from the text, because the target side is {target}")
    manifest = read_manifest(config.data_folder)
    encoded = [encode_task(each.name) for each in training_splits(config.data)]
    if not {*encoded, TOKENIZER_TASK} <= manifest.tasks.keys():
        return Prepared(config)  # training says what to do
    pairs, tokenizer = open_training_text(config.data_folder, config.data), manifest.tokenizer()
    text = Text.of(pairs)
    given = Given(
        shape=Shape(*(value_of(config, name) for name in SHAPE)) if SHAPE[0] in _kept(config) else None,
        batch_tokens=config.training.batch_tokens if "training.batch_tokens" in own.keep else None,
        steps=config.training.steps if "training.steps" in own.keep else None,
        smallest_batch=config.data.max_pieces + 1,
    )
    vocabularies = (tokenizer.source_vocabulary, tokenizer.target_vocabulary)
    minutes = own.minutes or config.training.max_training_minutes
    with session(config.runtime) as machine:
        distributed.check_same({"text": text, "own.minutes": minutes, "given settings": given}, "settings")
        chosen = plan(text, minutes, partial(_speed, config, machine, pairs, vocabularies), given)
        reason = _reason(text, minutes, chosen)
    values = values_of(config, chosen)
    planned = with_values(config, values)
    return Prepared(planned, _message(planned, reason, chosen, values), _warning(config, minutes, chosen))


def values_of(config: Config, chosen: Plan) -> dict[str, object]:
    """Return the values of all settings that follow from a plan; many passes over the text call for BPE-dropout."""
    keep = _kept(config)
    suits = config.tokenizer.model_type == "bpe" and not config.training.guided_weight
    rate = BPE_DROPOUT if suits and chosen.passes >= MIN_PASSES else 0.0
    dropout = dict.fromkeys(BPE_DROPOUT_SETTINGS, rate)
    regularised = any(value_of(config, name) if name in keep else rate for name in dropout)
    planned = settings_of(chosen, regularised=regularised, ends_by_time=_ends_by_time(config))
    return {name: value for name, value in {**planned, **dropout}.items() if name not in keep}


def _kept(config: Config) -> list[str]:
    """Return the settings that are not derived: those of another model, if the run begins from one, are among them."""
    of_other_model = (*SHAPE, *BPE_DROPOUT_SETTINGS) if config.training.init_from else ()
    return [*config.own.keep, *of_other_model]


def _ends_by_time(config: Config) -> bool:
    """Return whether the minutes of the plan are those that end the run."""
    return not config.own.minutes and config.training.max_training_minutes > 0


def _speed(
    config: Config, machine: Machine, text: Pairs, vocabularies: tuple[int, int], shape: Shape, batch_tokens: int
) -> float:
    """Return the seconds of a step of a shape."""
    values = {**dict(zip(SHAPE, shape, strict=True)), "training.batch_tokens": batch_tokens}
    return seconds_per_step(with_values(config, values), machine, text, vocabularies)


def _reason(text: Text, minutes: float, chosen: Plan) -> str:
    """Return what a plan follows from."""
    pairs = f"{text.pairs:,} pairs"
    if not chosen.step_seconds:
        return pairs
    limit = f"{minutes:g} minute{'s' if minutes != 1 else ''}" if minutes else "no minutes given"
    return f"{pairs}, {limit} and {chosen.step_seconds:.3f} s per step"


def _message(config: Config, reason: str, chosen: Plan, planned: Iterable[str]) -> str:
    """Return one line: why what was chosen, and how to override it."""
    own, unused = config.own, [] if registry.held_out(config.data) else [HOLD_OUT]
    names = [name for name in derivable_from_text(config) if name not in (*own.keep, *unused)]
    shown = [*names, *planned]
    values = " ".join(f"{name}={written(value_of(config, name))}" for name in shown)
    steps = f"{chosen.steps:,} steps, {chosen.passes:.1f} passes over the text"
    if _ends_by_time(config) and chosen.most_steps > chosen.steps:
        steps = f"about {steps}, and at most {chosen.most_steps:,} if there is time"
    duration = f", about {chosen.minutes:.1f} minutes" if chosen.step_seconds else ""
    return f"own.derive: {reason} give {steps}{duration}: {values} (give any of them, or own.minutes, to override)"


def _warning(config: Config, minutes: float, chosen: Plan) -> str:
    """Return a line if the minutes are too few to learn from the text; else nothing."""
    most = min(USEFUL_STEPS, chosen.most_steps)
    if not (minutes and chosen.step_seconds) or chosen.steps >= min(MIN_USEFUL_STEPS, most):
        return ""
    limit = "training.max_training_minutes" if _ends_by_time(config) else "own.minutes"
    return (
        f"{limit}={minutes:g} is too little: after {chosen.steps} steps a model hardly translates; "
        f"{limit}={math.ceil(chosen.minutes_of(most))} would do"
    )
