"""Plan a run before it begins: measure this machine, and say in one line what was chosen and why."""

import gc
import math
import sys
import time
from dataclasses import replace

from nmt.compute import distributed
from nmt.compute.machine import Machine, free_cached_memory, is_out_of_memory, wait
from nmt.config.commands import DERIVED, SHAPE, VOCABULARY
from nmt.config.keys import value_of, with_values, written
from nmt.config.tree import Config
from nmt.data.corpora import training_splits
from nmt.data.manifest import TOKENIZER_TASK, encode_task, read_manifest
from nmt.data.mixture import open_training_text
from nmt.data.store import SIDES, PairStore
from nmt.errors import CommonError
from nmt.launched import is_main_process
from nmt.own_text.complete import as_begun
from nmt.own_text.plan import BPE_DROPOUT_SETTING, LEARNING_RATE, Plan, Shape, Text, plan, settings_of
from nmt.training.build import build_trainer, training_batches
from nmt.training.memory_check import tokens_that_fit

WARM_UP_STEPS, MAX_STEPS, MAX_SECONDS = 2, 20, 4.0
"""Steps before those that are timed, and the limits of these; one is timed in any case."""
MIN_USEFUL_STEPS, USEFUL_STEPS = 300, 600
"""Fewer steps than the first bring a warning, and the second would do."""


def plan_training(config: Config) -> Config:
    """Return the settings of a run with those that are derived; a run that has begun keeps its own."""
    if not config.own.derive:
        return config
    if (begun := as_begun(config)) is not None:
        return begun
    manifest = read_manifest(config.data_folder)
    encoded = [encode_task(each.name) for each in training_splits(config.data)]
    if not {*encoded, TOKENIZER_TASK} <= manifest.tasks.keys():
        return config  # training says what to do
    pairs, tokenizer = open_training_text(config.data_folder, config.data), manifest.tokenizer()
    text = Text(len(pairs), len(pairs) + max(int(pairs.lengths(side).sum()) for side in SIDES))
    of_other_model = (*SHAPE, VOCABULARY, BPE_DROPOUT_SETTING, LEARNING_RATE) if config.training.init_from else ()
    of_other_optimizer = () if config.training.optimizer == "muon" else (LEARNING_RATE,)
    splits_words_one_way = config.tokenizer.model_type != "bpe" or config.training.guided_weight > 0
    of_bpe = (BPE_DROPOUT_SETTING,) if splits_words_one_way else ()
    kept = (*config.own.keep, *of_other_model, *of_other_optimizer, *of_bpe)
    given = {name: value_of(config, name) for name in kept}
    minutes = config.own.minutes or config.training.max_training_minutes
    with distributed.session(config.runtime) as machine:

        def speed(shape: Shape, batch_tokens: int) -> float:
            values = {**dict(zip(SHAPE, shape, strict=True)), "training.batch_tokens": batch_tokens}
            vocabularies = tokenizer.source_vocabulary, tokenizer.target_vocabulary
            return seconds_per_step(with_values(config, values), machine, pairs, vocabularies)

        distributed.check_same({"text": text, "own.minutes": minutes, "given settings": given}, "settings")
        chosen = plan(text, minutes, speed, given, longest_sentence=config.data.max_pieces + 1)
    ends_by_time = not config.own.minutes and minutes > 0
    planned = with_values(config, settings_of(chosen, given, ends_by_time=ends_by_time))
    if is_main_process():
        _tell(planned, text, minutes, chosen, [name for name in DERIVED if name not in given])
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


def _tell(config: Config, text: Text, minutes: float, chosen: Plan, derived: list[str]) -> None:
    """Say in one line what was chosen, why, and how to override it; warn if the minutes are too few to learn."""
    limit = f", {minutes:g} minutes" if minutes else ""
    measured = chosen.step_seconds > 0
    speed = f"{limit}, {chosen.step_seconds:.3f} s per step" if measured else ""
    steps = f"{chosen.steps:,} steps, {chosen.passes:.1f} passes over the text"
    values = " ".join(f"{name}={written(value_of(config, name))}" for name in derived)
    print(
        f"own.derive: {text.pairs:,} pairs{speed} give {steps}: {values} (give any of them, or own.minutes)", flush=True
    )
    useful = min(USEFUL_STEPS, chosen.most_steps)
    if minutes and measured and chosen.steps < min(MIN_USEFUL_STEPS, useful):
        warning = f"{minutes:g} minutes are too little: after {chosen.steps} steps a model hardly translates"
        enough = math.ceil(chosen.minutes_of(useful))
        print(f"warning: {warning}; own.minutes={enough} would do", file=sys.stderr, flush=True)
