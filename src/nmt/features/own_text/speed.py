"""Measure what a training step takes on this machine."""

import math
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count

from nmt.compute.machine import is_out_of_memory, prepare_machine
from nmt.config.schema import Config
from nmt.data.store import Pairs
from nmt.measuring.steps import free_memory, measured_batches, update, wait
from nmt.training.new_trainer import new_trainer

WARM_UP_STEPS = 2
MAX_STEPS, MAX_SECONDS = 20, 4.0
"""Limits of the steps that are timed; one is timed in any case."""


def seconds_per_step(
    config: Config, text: Pairs, vocabularies: tuple[int, int], clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the mean seconds of the first steps of a run on its own text, after some steps to warm up.

    It is infinite if the memory is too small for a step.
    """
    try:
        return _timed(config, text, vocabularies, clock)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    finally:  # after the block, because an error keeps the memory of its frames
        free_memory()
    return math.inf


def _timed(config: Config, text: Pairs, vocabularies: tuple[int, int], clock: Callable[[], float]) -> float:
    machine = prepare_machine(config.runtime)
    trainer = new_trainer(config, machine, *vocabularies)
    batches = measured_batches(trainer, text, seed=config.seed, columns=trainer.columns)
    started, seconds, step = clock(), 0.0, 0
    with closing(batches):  # type: ignore[type-var] # it is a generator
        for step in count(1 - WARM_UP_STEPS):
            update(trainer, next(batches))
            wait(machine.device)
            if step == 0:
                started = clock()
            seconds = clock() - started
            if step >= MAX_STEPS or (step > 0 and seconds >= MAX_SECONDS):
                break
    return seconds / step
