"""Plan a run before it begins: measure this machine, and say in one line what was chosen and why."""

import gc
import math
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from textwrap import fill

from nmt.compute import distributed
from nmt.compute.machine import Machine, free_cached_memory, is_out_of_memory, wait
from nmt.config.commands import HOLD_OUT, SHAPE
from nmt.config.data import is_text
from nmt.config.keys import value_of, with_values, written
from nmt.config.tree import Config
from nmt.data.corpora import training_splits
from nmt.data.manifest import TOKENIZER_TASK, encode_task, read_manifest
from nmt.data.mixture import open_training_text
from nmt.data.sources import registry
from nmt.data.store import PairStore
from nmt.errors import CommonError
from nmt.launched import is_main_process
from nmt.own_text.complete import as_begun, derivable_from_text
from nmt.own_text.plan import BPE_DROPOUT_SETTING, Plan, Shape, Text, plan, settings_of
from nmt.training.build import build_trainer, training_batches
from nmt.training.memory_check import tokens_that_fit

WARM_UP_STEPS, MAX_STEPS, MAX_SECONDS = 2, 20, 4.0
"""Steps before those that are timed, and the limits of these; one is timed in any case."""
MIN_USEFUL_STEPS, USEFUL_STEPS = 300, 600
"""Fewer steps than the first bring a warning, and the second would do."""
LINE_CHARACTERS = 120


def plan_training(config: Config) -> Config:
    """Return the settings of a run with those that are derived; a run that has begun keeps its own."""
    if not config.own.derive:
        return config
    if (begun := as_begun(config)) is not None:
        return begun
    if not is_text(target := config.data.target_lang):
        _say(f"own.derive: nothing is derived from the text, because the target side is {target}")
        return config
    manifest = read_manifest(config.data_folder)
    encoded = [encode_task(each.name) for each in training_splits(config.data)]
    if not {*encoded, TOKENIZER_TASK} <= manifest.tasks.keys():
        return config  # training says what to do
    pairs, tokenizer = open_training_text(config.data_folder, config.data), manifest.tokenizer()
    text = Text(len(pairs), len(pairs) + max(int(pairs.source_lengths.sum()), int(pairs.target_lengths.sum())))
    of_other_model = (*SHAPE, BPE_DROPOUT_SETTING) if config.training.init_from else ()
    given = {name: value_of(config, name) for name in (*config.own.keep, *of_other_model)}
    minutes = config.own.minutes or config.training.max_training_minutes
    with distributed.session(config.runtime) as machine:

        def speed(shape: Shape, batch_tokens: int) -> float:
            values = {**dict(zip(SHAPE, shape, strict=True)), "training.batch_tokens": batch_tokens}
            vocabularies = tokenizer.source_vocabulary, tokenizer.target_vocabulary
            return seconds_per_step(with_values(config, values), machine, pairs, vocabularies)

        distributed.check_same({"text": text, "own.minutes": minutes, "given settings": given}, "settings")
        chosen = plan(text, minutes, speed, given, longest_sentence=config.data.max_pieces + 1)
    ends_by_time = not config.own.minutes and minutes > 0
    with_bpe = config.tokenizer.model_type == "bpe" and not config.training.guided_weight
    values = settings_of(chosen, given, ends_by_time=ends_by_time, with_bpe=with_bpe)
    planned = with_values(config, values)
    _tell(planned, text, minutes, chosen, values)
    return planned


def seconds_per_step(config: Config, machine: Machine, text: PairStore, vocabularies: tuple[int, int]) -> float:
    """Return the mean seconds of the first steps of a run on its own text; infinite if the memory is too small.

    All processes that train together must call this, and all return the same.
    """
    try:
        return _timed(config, machine, text, vocabularies)
    except CommonError:  # nothing fits
        pass
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    finally:  # after the block, because an error keeps the memory of its frames
        gc.collect()
        free_cached_memory(machine.device)
    return math.inf


def _timed(config: Config, machine: Machine, text: PairStore, vocabularies: tuple[int, int]) -> float:
    trainer = build_trainer(config, machine, vocabularies)
    # as training does: one process may have too little memory for steps that others wait for, or Linux may kill it
    tokens = tokens_that_fit(trainer, text, longest_sentence=config.data.max_pieces + 1)
    trainer.config = replace(trainer.config, device_tokens=tokens)
    batches, steps = training_batches(trainer, text), 0
    for _ in range(WARM_UP_STEPS):
        trainer.update(next(batches))
    wait(machine.device)
    started = time.perf_counter()
    while True:
        trainer.update(next(batches))
        wait(machine.device)
        steps, seconds = steps + 1, time.perf_counter() - started
        if distributed.highest(steps >= MAX_STEPS or seconds >= MAX_SECONDS):
            return max(distributed.gather_objects(seconds / steps))


def _tell(config: Config, text: Text, minutes: float, chosen: Plan, values: Mapping[str, object]) -> None:
    """Say in one line what was chosen, why, and how to override it; warn if the minutes are too few to learn."""
    measured, most = chosen.step_seconds > 0, config.training.steps
    limit = f", {minutes:g} minutes" if minutes else ""
    speed = f"{limit}, {chosen.step_seconds:.3f} s per step" if measured else ""
    steps = f"{chosen.steps:,} steps, {chosen.passes:.1f} passes over the text"
    steps += f", about {chosen.minutes_of(chosen.steps):.1f} minutes" if measured else ""
    steps += f", and at most {most:,} if there is time" if most > chosen.steps else ""
    names = [*derivable_from_text(config), *values]
    names = [name for name in names if name != HOLD_OUT or registry.held_out(config.data)]
    all_values = " ".join(f"{name}={written(value_of(config, name))}" for name in names)
    _say(f"own.derive: {text.pairs:,} pairs{speed} give {steps}: {all_values} (give any of them, or own.minutes)")
    useful = min(USEFUL_STEPS, chosen.most_steps)
    if minutes and measured and chosen.steps < min(MIN_USEFUL_STEPS, useful) and is_main_process():
        name = "own.minutes" if config.own.minutes else "training.max_training_minutes"
        enough = math.ceil(chosen.minutes_of(useful))
        too_little = f"{name}={minutes:g} is too little: after {chosen.steps} steps a model hardly translates"
        print(f"warning: {too_little}; {name}={enough} would do", file=sys.stderr, flush=True)


def _say(line: str) -> None:
    """Print a line, in several that are not too long, on the first process only."""
    if is_main_process():
        print(
            fill(line, LINE_CHARACTERS, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False),
            flush=True,
        )
