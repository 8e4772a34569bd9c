"""Measure what a training step takes on this machine, or on those that train together."""

import math
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import count

from nmt.compute import distributed
from nmt.compute.machine import Machine, is_out_of_memory
from nmt.config.schema import Config
from nmt.data.store import Pairs
from nmt.errors import CommonError
from nmt.measuring.steps import free_memory, measured_batches, update, wait
from nmt.training.hook import closing_hooks
from nmt.training.memory_check import tokens_that_fit
from nmt.training.new_trainer import new_trainer

WARM_UP_STEPS = 2
MAX_STEPS, MAX_SECONDS = 20, 4.0
"""Limits of the steps that are timed; one is timed in any case."""


def seconds_per_step(
    config: Config,
    machine: Machine,
    text: Pairs,
    vocabularies: tuple[int, int],
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the mean seconds of the first steps of a run on its own text, after some steps to warm up.

    It is infinite if the memory is too small for a step. All processes that train together must call this, and all
    return the same.
    """
    try:
        return _timed(config, machine, text, vocabularies, clock)
    except CommonError:  # nothing fits
        pass
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    finally:  # after the block, because an error keeps the memory of its frames
        free_memory()
    return math.inf


def _timed(
    config: Config, machine: Machine, text: Pairs, vocabularies: tuple[int, int], clock: Callable[[], float]
) -> float:
    trainer = new_trainer(config, machine, *vocabularies)
    # as training does: one process may have too little memory for steps that others wait for, or Linux may kill it
    tokens = tokens_that_fit(trainer, text, longest_sentence=config.data.max_pieces + 1)
    trainer.config = replace(trainer.config, device_tokens=tokens)
    batches = measured_batches(trainer, text, seed=config.seed, columns=trainer.columns)
    started, seconds, step = clock(), 0.0, 0
    # a hook that watches steps must not wait for further ones
    with closing_hooks(trainer.hooks), closing(batches):  # type: ignore[type-var] # it is a generator
        for step in count(1 - WARM_UP_STEPS):
            update(trainer, next(batches))
            wait(machine.device)
            if step == 0:
                started = clock()
            seconds = clock() - started
            if distributed.highest(step >= MAX_STEPS or (step > 0 and seconds >= MAX_SECONDS)):
                break
    return max(distributed.gather_objects(seconds / step))
